"""Memory formats: in which order the dimensions of new memory lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Batched, Dual, LevelArray, raw_leaf
from .._device import channels_last, channels_last_3d, contiguous_format, preserve_format
from ._layout import dense_strides, ordered, strides

RANKS = {channels_last: 4, channels_last_3d: 5}


def order_in(ndim: int, memory_format: Any) -> list[int]:
    """Return the dimensions from the innermost outwards, with torch's error for a rank that has no such format."""
    rank = RANKS.get(memory_format)
    if rank is None:
        return list(range(ndim - 1, -1, -1))
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")
    return [1, *range(ndim - 1, 1, -1), 0]


def strides_in(shape: Any, memory_format: Any) -> tuple[int, ...]:
    """Return the strides of new memory in a format."""
    if memory_format is None or memory_format is contiguous_format or memory_format is preserve_format:
        return dense_strides(shape)
    found, step = [0] * len(shape), 1
    for k in order_in(len(shape), memory_format):
        found[k] = step
        step *= max(shape[k], 1)
    return tuple(found)


def is_laid_out_in(array: Any, memory_format: Any) -> bool:
    """Tell whether an array lies in memory in a format."""
    raw = raw_leaf(array)
    if isinstance(raw, np.generic):
        return memory_format not in RANKS
    if memory_format not in RANKS:
        return bool(raw.flags.c_contiguous)
    if array.ndim != RANKS[memory_format]:
        return False
    expected = 1
    own = strides(array)
    for k in order_in(array.ndim, memory_format):
        if array.shape[k] != 1:
            if own[k] != expected:
                return False
            expected *= array.shape[k]
    return True


def laid_out_in(array: Any, memory_format: Any) -> Any:
    """Bring an array that nobody shares to a format."""
    if memory_format in RANKS:
        order = order_in(array.ndim, memory_format)
        return array if isinstance(array, LevelArray) else ordered(array, order)
    if isinstance(array, Dual):
        tangent = None if array.tangent is None else laid_out_in(array.tangent, memory_format)
        return Dual(array.level, laid_out_in(array.primal, memory_format), tangent)
    if isinstance(array, Batched):
        return Batched(array.level, laid_out_in(array.array, memory_format))
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) and array.ndim else array
