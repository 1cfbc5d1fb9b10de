"""Joining tensors along a dimension they have, or along a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _errors
from ..._device import channels_last, channels_last_3d
from ..._ops import shape as s
from ...overrides import takes_out
from .. import _base
from .._object.formats import is_laid_out_in, laid_out_in
from .._recording.record import promoted, record


def need_tensors(values: Sequence[Any], argument: int) -> None:
    """Raise torch's error for what is no tensor among those that a function takes one by one."""
    for k, one in enumerate(values):
        if not isinstance(one, _base.Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument {argument}, but got {type(one).__name__}")


def in_common_dtype(tensors: Sequence[Any]) -> list[Any] | None:
    """Cast the arrays of tensors to their common dtype; None where they have one."""
    dtype = tensors[0]._array.dtype
    for one in tensors:
        if one._array.dtype is not dtype and one._array.dtype != dtype:
            return promoted([t._array for t in tensors])[0]
    return None


@takes_out
def cat(tensors: Any, dim: int = 0) -> Any:
    """Join tensors along a dimension.

    Args:
        tensors: a sequence of tensors whose other sizes are equal; dtypes are promoted
        dim: the dimension

    Example:
        >>> torch.cat((torch.tensor([[1, 2]]), torch.tensor([[3, 4], [5, 6]])), dim=0)
        tensor([[1, 2],
                [3, 4],
                [5, 6]])
    """
    if type(tensors) not in (tuple, list) or not tensors:
        tensors = list(tensors)
        if not tensors:
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first = tensors[0]._array
    ndim, dtype = first.ndim, first.dtype
    d = dim + ndim if dim < 0 else dim
    before, after = first.shape[:d], first.shape[d + 1 :]
    for one in tensors:
        array = one._array
        if array.dtype is not dtype or array.ndim != ndim:
            break
        if ndim > 1 and (array.shape[:d] != before or array.shape[d + 1 :] != after):
            break
    else:
        if 0 <= d < ndim:
            result = record(s.concat, tensors, {"axis": d}, "CatBackward0", {"dim": dim})
            return result if ndim < 4 else _in_their_format(result, tensors)
    return _cat_checked(tensors, dim)


def _in_their_format(result: Any, tensors: Any) -> Any:
    """Lay images out with their channels last if all of them are, as torch does."""
    memory_format = {4: channels_last, 5: channels_last_3d}.get(result._array.ndim)
    if memory_format is None:
        return result
    for one in tensors:
        array = one._array
        if not isinstance(array, np.ndarray) or array.flags.c_contiguous or not is_laid_out_in(array, memory_format):
            return result
    result._array = laid_out_in(result._array, memory_format)
    return result


def _cat_checked(tensors: Any, dim: int) -> Any:
    """Join with all of torch's checks; empty vectors stand among tensors of any rank."""
    tensors = list(tensors)
    first, nothing = None, False
    for k, one in enumerate(tensors):
        shape = one._array.shape
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
        if len(shape) == 1 and shape[0] == 0:
            nothing = True
        elif first is None:
            first = shape
    if first is None:
        first = (0,)
    ndim = len(first)
    d = 0 if first == (0,) else _errors.wrap_dim(dim, ndim)
    for k, one in enumerate(tensors):
        shape = one._array.shape
        if len(shape) == 1 and shape[0] == 0:
            continue
        if len(shape) != ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {ndim} and {len(shape)}")
        for axis in range(ndim):
            if axis != d and shape[axis] != first[axis]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {first[axis]} but got size "
                    f"{shape[axis]} for tensor number {k} in the list."
                )
    run_on = in_common_dtype(tensors)
    if nothing and ndim > 1:
        empty = (*first[:d], 0, *first[d + 1 :])
        arrays = run_on or [x._array for x in tensors]
        run_on = [s.reshape(a, shape=empty) if tuple(a.shape) == (0,) else a for a in arrays]
    return record(s.concat, tensors, {"axis": d}, "CatBackward0", {"dim": dim}, run_on)


concat = concatenate = cat


@takes_out
def stack(tensors: Any, dim: int = 0) -> Any:
    """Join tensors of one shape along a new dimension.

    Args:
        tensors: a sequence of tensors
        dim: where the new dimension is in the result

    Example:
        >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    if type(tensors) not in (tuple, list) or not tensors:
        tensors = list(tensors)
        if not tensors:
            raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array
    shape, dtype, run_on = first.shape, first.dtype, None
    d = dim if 0 <= dim <= len(shape) else _errors.wrap_dim(dim, len(shape) + 1)
    for one in tensors:
        if one._array.shape != shape:
            _refuse_shapes(tensors)
        if one._array.dtype is not dtype:
            run_on = in_common_dtype(tensors)
            break
    return record(s.stack, tensors, {"axis": d}, "StackBackward0", {"dim": dim}, run_on)


def _refuse_shapes(tensors: Any) -> None:
    first = tensors[0]._array.shape
    for k, one in enumerate(tensors):
        if one._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {_errors.sizes(first)} at entry 0 and "
                f"{_errors.sizes(one._array.shape)} at entry {k}"
            )
