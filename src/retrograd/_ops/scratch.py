"""Memory that a thread keeps for what is made on the way: fresh memory comes from the system page by page."""

from __future__ import annotations

import threading
from math import prod

import numpy as np

HELD = 1 << 23  # bytes a thread keeps for one use
RUN = 1 << 12  # bytes up to which NumPy copies a run of memory more quickly if it takes it for one element


class _Held(threading.local):
    def __init__(self):
        self.by_use = {}


_held = _Held()


def scratch(xp, use, shape, dtype):
    """Return memory for an array that is gone before the next one for the same use is made."""
    size = prod(shape) * dtype.itemsize
    if xp.module is not np or size > HELD:
        return xp.module.empty(shape, dtype)
    memory = _held.by_use.get(use)
    if memory is None or memory.size < size:
        memory = _held.by_use[use] = np.empty(size, np.uint8)
    return np.ndarray(shape, dtype, memory)
