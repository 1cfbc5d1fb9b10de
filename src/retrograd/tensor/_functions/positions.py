"""Positions in the flattened tensor, and positions of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import reducing as ops
from ...overrides import overridable, takes_out
from .._base import wrap
from .._recording.record import record
from .gathering import INT64, few_inside, same_dtype_out
from .index import _scalar, first_outside
from .joining import stack
from .masks import NOT_LONG


def _check_positions(array: Any, count: int) -> None:
    array = raw_leaf(array)  # of every sample of a batch
    if not array.size or is_meta(array) or (array.size < 16 and few_inside(array, -count, count)):
        return
    if array.min() < -count or array.max() >= count:
        wrong = first_outside(array, -count, count)
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {count} elements.")


@takes_out
@same_dtype_out("{}(): self and out expected to have the same dtype, but got self.dtype = {} and out.dtype = {}")
def take(input: Any, index: Any) -> Any:
    """Pick elements of the flattened tensor by index.

    Args:
        input: a tensor
        index: a tensor of int64; the result has its shape

    Example:
        >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
        tensor([1, 4])
    """
    if index._array.dtype is not INT64 and index._array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {_scalar(index)}")
    if not input._array.size and index._array.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_positions(index._array, input._array.size)
    return record(ops.take, (input, index), {}, "TakeBackward0")


@overridable
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return a copy with values written at positions of the flattened tensor."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {_scalar(index)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {_scalar(input)} and "
            f"source.dtype = {_scalar(source)}"
        )
    if source._array.size != index._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    if not input._array.size and index._array.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    _check_positions(index._array, input._array.size)
    return record(ops.put, (input, index, source), {"accumulate": accumulate}, "PutBackward0")


@overridable
def argwhere(input: Any) -> Any:
    """Return the indices of the elements that are not zero, one in a row; under vmap all samples must have as many.

    Args:
        input: a tensor

    Example:
        >>> torch.argwhere(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]])
    """
    return wrap(ops.argwhere(input._array))


@takes_out
@same_dtype_out(NOT_LONG)
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """Return the indices of the first `size` elements that are not zero; missing rows are filled."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return wrap(ops.nonzero_static(input._array, count=size, fill_value=fill_value))


@overridable
def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Turn positions of a flattened tensor into one index for each dimension."""
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == _dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, bool) or not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    found, step = [], 1
    for size in reversed(sizes):
        found.append(indices.div(step, rounding_mode="floor") % size)
        step *= size
    return tuple(stack(found[::-1], -1).unbind(-1)) if found else ()
