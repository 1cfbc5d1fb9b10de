"""Masks, and elements taken along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray, is_meta
from ..._core.numpy_namespace import ARRAY, raw_namespace
from ..._core.primitive import vocabulary
from ..._dtypes import CPP_NAMES
from ..._ops import index as ops
from ..._ops import reducing
from ..._ops.along import take_along
from ..._ops.reducing import positions
from ..._ops.shape import overwrite
from ...overrides import overridable, takes_out
from .. import _base
from .._aliasing.views import refuse_integers
from .._base import wrap
from .._object.numbers import element_of
from .._recording.out import call_into
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import record
from .casting import _readable
from .creation import full_like
from .gathering import INT64, SAME_SCALAR_TYPE, few_inside, gather, same_dtype_out
from .shape import expand


@overridable
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Fill with a value where a mask is True.

    Args:
        input: a tensor
        mask: a tensor of booleans; it broadcasts
        value: a number, or a tensor with one element

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0])
        >>> x.masked_fill(x > 1.5, 0.0)
        tensor([1., 0., 0.])
    """
    result = masked_fill_record(input, mask, value)
    if result._edge is not None and result._array.dtype.kind in "biu":
        refuse_integers(result)
    return result


def masked_fill_record(input: Any, mask: Any, value: Any) -> Any:
    """Choose `value` where `mask`; the node is torch's MaskedFillBackward0."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {CPP_NAMES[_base.dtype_of(mask).name]}"
        )
    dtype = input._array.dtype
    if mask._array.shape != input._array.shape:
        _common_shape(mask, input)
    if isinstance(value, _base.Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        filled: Any = value
        if not isinstance(value._array, LevelArray) and value._array.dtype != dtype:
            element_of(value.item(), dtype)  # which refuses what the dtype lacks
        name = "MaskedFillBackward1"
    else:
        filled = element_of(value, dtype)
        name = "MaskedFillBackward0"
    return record(ops.masked_fill, (input, mask, filled), {}, name)


@overridable
def fill(input: Any, value: Any) -> Any:
    """Return a copy filled with a value."""
    from ..._ops.drawing import replaced

    if not isinstance(value, _base.Tensor):
        return record(replaced, (input, full_like(input, value)._array), {}, "FillBackward0")
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )
    return record(overwrite, (input, value), {}, "FillBackward1")


@takes_out
@same_dtype_out(SAME_SCALAR_TYPE)
def masked_select(input: Any, mask: Any) -> Any:
    """Return the elements at which a mask is True, in one dimension.

    Args:
        input: a tensor
        mask: a tensor of booleans; it broadcasts

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.masked_select(x, x > 2)
        tensor([3, 4])
    """
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = _common_shape(mask, input)
    chosen = mask._array
    if isinstance(chosen, LevelArray):
        chosen = _readable(
            chosen,
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
            "each batch this would return a differently shaped Tensor.\nHint: torch.where(mask, x, 0) keeps the shape.",
        )
    if not input._array.ndim:
        input = input.reshape(1)
    own = tuple(input._array.shape)
    if chosen.shape == own == shape:
        arrays = chosen.nonzero()
    else:
        places = np.broadcast_to(chosen, shape or (1,)).nonzero()[max(len(shape), 1) - len(own) :]
        arrays = tuple(
            place if n == wide else place * 0
            for n, wide, place in zip(own, (shape or (1,))[-len(own) :], places, strict=True)
        )
    return record(ops.index, (input, *arrays), {"layout": (ARRAY,) * len(own)}, "MaskedSelectBackward0")


@overridable
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Return a copy with the elements of a source written, in order, where a mask is true."""
    if input._array.dtype != source._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{_base.dtype_of(input)._scalar_name} and {_base.dtype_of(source)._scalar_name}"
        )
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {_base.dtype_of(mask)._scalar_name}"
        )
    shape = _common_shape(mask, input)
    mask = mask if tuple(mask._array.shape) == shape else mask.expand(shape)
    known = not isinstance(mask._array, LevelArray) and not is_meta(mask._array)
    if known and np.count_nonzero(mask._array) > source._array.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return record(reducing.masked_scatter, (input, mask, source), {}, "MaskedScatterBackward0")


def _common_shape(mask: Any, tensor: Any) -> tuple[int, ...]:
    shapes = tuple(mask._array.shape), tuple(tensor._array.shape)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise _errors.broadcast_error(*shapes) from None


NOT_LONG = "{}: Expected out tensor to have scalar type {} but got scalar type{}"


@overridable
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero.

    Args:
        input: a tensor
        as_tuple: a tensor for each dimension, which can be used as an index, instead of one with a row for each element

    Example:
        >>> torch.nonzero(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]])
    """
    if out is not None:
        if as_tuple or not isinstance(out, _base.Tensor):
            raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
        return call_into(_nonzero, (input,), {}, out)
    return _nonzero(input, as_tuple)


@same_dtype_out(NOT_LONG)
def _nonzero(input: Any, as_tuple: bool = False) -> Any:
    array = input._array
    if isinstance(array, LevelArray):
        array = _readable(
            array,
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            "aten::nonzero.\nHint: torch.where(mask, x, 0) keeps the shape.",
        )
    if not as_tuple:
        return wrap(positions(raw_namespace(array), array).T)
    array = array if array.ndim else array.reshape(1)
    return tuple(wrap(part) for part in positions(raw_namespace(array), array))


@takes_out
@needs_dtype_of_result
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Pick elements along a dimension by index; the other dimensions broadcast.

    Args:
        input: a tensor
        indices: a tensor of int64, such as `argsort` returns
        dim: the dimension; without it, the flattened tensor

    Example:
        >>> x = torch.tensor([[3, 1, 2]])
        >>> torch.take_along_dim(x, torch.argsort(x, dim=1), dim=1)
        tensor([[1, 2, 3]])
    """
    own, at = input._array, indices._array
    if at.dtype is INT64 and type(own) is type(at) is np.ndarray and at.shape == own.shape and 0 < at.size < 16:
        axis = None if type(dim) is not int else dim if dim >= 0 else dim + at.ndim
        if axis is not None and 0 <= axis < at.ndim and few_inside(at, 0, own.shape[axis]):
            input = input if input._edge is None else expand(input, own.shape)  # a node of torch's
            return record(take_along, (input, indices), {"axis": axis}, "GatherBackward0", {"dim": dim})
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {_base.dtype_of(indices)._scalar_name}"
        )
    shape, wanted = list(own.shape), list(at.shape)
    if len(shape) != len(wanted):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    axis = _errors.wrap_dim(dim, len(shape))
    for k, (a, b) in enumerate(zip(shape, wanted, strict=True)):
        if k != axis and a != b:
            if 1 not in (a, b):
                raise _errors.broadcast_error(tuple(shape), tuple(wanted))
            shape[k] = wanted[k] = b if a == 1 else a
    input, indices = expand(input, shape), expand(indices, wanted)
    at, size = indices._array, shape[axis] if shape else 1
    if size and (isinstance(at, LevelArray) or (at.size and not is_meta(at) and (at.min() < 0 or at.max() >= size))):
        indices = wrap(vocabulary.remainder(at, size))  # torch counts around, in both directions
    return gather(input, dim, indices)
