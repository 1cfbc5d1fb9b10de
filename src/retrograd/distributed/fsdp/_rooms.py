"""Memory that can be given back and taken again while arrays stay at their address.

Note [Rooms]
The graph keeps the arrays of parameters that forward has used, and their memory must go back to the system until backward needs it. torch
resizes a storage to nothing and back; a NumPy array cannot move. So whole parameters live in pages of their own, which `give_back` tells
the system to forget: the address stays, reading it gives zeros, and the next gathering fills it. Pages are large where the system has
such: each is asked for again after it was given back, and 1,000 small ones take longer than copying what comes into them. Libraries that
pin pages for a network card (UCX, libfabric) watch for that call.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np

SMALLEST = 1 << 16  # bytes; below, pages of its own would waste more than they give back
LARGE_PAGE = 1 << 21
CAN_GIVE_BACK = hasattr(mmap, "MADV_DONTNEED") and hasattr(mmap, "MAP_PRIVATE")


class Room:
    """Memory for numbers of a dtype, on the host or on a device. That of a device stays taken."""

    def __init__(self, count: int, dtype: Any, module: Any = np) -> None:
        self._pages: Any = None
        size = count * dtype.itemsize
        if module is np and CAN_GIVE_BACK and size >= SMALLEST:
            self._pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if size >= LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a system that is built without them
                    self._pages.madvise(mmap.MADV_HUGEPAGE)
            self.array = np.frombuffer(self._pages, dtype, count)
        else:
            self.array = module.empty(count, dtype)

    def give_back(self) -> None:
        """Let the system have the memory until it is written again."""
        if self._pages is not None:
            self._pages.madvise(mmap.MADV_DONTNEED)
