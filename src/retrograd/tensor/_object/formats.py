"""Memory formats: in which order the dimensions of new memory lie."""

from __future__ import annotations

from typing import Any

from ..._core.arrays import Batched, LevelArray
from ..._device import channels_last, channels_last_3d, contiguous_format, preserve_format
from ..._device import memory_format as format_type
from .layout import dense_strides, in_order, is_contiguous, packed, strides

RANKS = {channels_last: 4, channels_last_3d: 5}


def need_format(name: str, given: Any) -> None:
    """Raise torch's error for what is given as a memory format and is none."""
    if not isinstance(given, format_type):
        from ..._signatures import type_name

        raise TypeError(f"{name}(): argument 'memory_format' must be torch.memory_format, not {type_name(given)}")


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
    need_format("is_contiguous", memory_format)
    if memory_format not in RANKS:
        return is_contiguous(array)
    _refuse_batches(array)
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


def suggested(array: Any) -> Any:
    """Return the format that torch takes an array's strides for: contiguous unless the channels are clearly last."""
    for memory_format, rank in RANKS.items():
        if array.ndim == rank and _channels_last(array.shape, strides(array)):
            return memory_format
    return contiguous_format


def _channels_last(shape: Any, steps: Any) -> bool:
    least = 0
    if not steps[1]:
        return False
    for k in (1, *range(len(shape) - 1, 1, -1), 0):
        if not shape[k] or steps[k] < least or (k == 0 and least == steps[1]):
            return False  # the last: all sizes but that of the batch are 1, and either format would do
        least = steps[k] * max(shape[k], 1)
    return True


def _refuse_batches(array: Any) -> None:
    """Raise torch's error for a question about the format of a sample."""
    while isinstance(array, LevelArray):
        if isinstance(array, Batched):
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        array = array.primal  # type: ignore[attr-defined]


def laid_out_in(array: Any, memory_format: Any) -> Any:
    """Bring an array that nobody shares to a format."""
    return in_order(array, order_in(array.ndim, memory_format)) if memory_format in RANKS else packed(array)
