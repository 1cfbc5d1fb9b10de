"""Memory layout as torch describes it: strides in elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import LevelArray, raw_leaf


def strides(array: Any) -> tuple[int, ...]:
    """Return torch's strides of an array; one of a transform looks dense."""
    raw = raw_leaf(array)
    if isinstance(array, LevelArray) or isinstance(raw, np.generic):
        return dense_strides(array.shape)
    return tuple(n // raw.itemsize for n in raw.strides)


def dense_strides(shape: Any) -> tuple[int, ...]:
    """Return the strides of new memory."""
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))
