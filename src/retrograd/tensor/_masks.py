"""Masks, and elements taken along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _errors
from .._core.arrays import LevelArray
from .._core.numpy_namespace import ARRAY
from .._ops import index as ops
from ..overrides import overridable
from . import _base
from ._base import wrap
from ._gathering import gather
from ._indexing import getitem
from ._record import record
from ._shaping import expand
from ._views import refuse_integers


@overridable
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Return a copy with a value where a mask is true."""
    result = masked_fill_record(input, mask, value)
    if result._edge is not None and result._array.dtype.kind in "biu":
        refuse_integers(result)
    return result


def masked_fill_record(input: Any, mask: Any, value: Any) -> Any:
    """Choose `value` where `mask`; the node is torch's MaskedFillBackward0."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {_c_dtype(mask)}")
    dtype = input._array.dtype
    _common_shape(mask, input)
    if isinstance(value, _base.Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        filled: Any = value
        name = "MaskedFillBackward1"
    else:
        filled = np.asarray(value).astype(dtype)[()]
        name = "MaskedFillBackward0"
    return record(ops.masked_fill, (input, mask, filled), {}, name)


def _c_dtype(tensor: Any) -> str:
    from ._matrix import _C_NAMES

    return _C_NAMES[tensor._array.dtype.name]


@overridable
def masked_select(input: Any, mask: Any) -> Any:
    """Take the elements where a mask is true."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = _common_shape(mask, input)
    own = tuple(input._array.shape)
    chosen = mask.expand(shape)
    if not own or isinstance(chosen._array, LevelArray):
        return getitem(input.expand(shape), chosen)
    places = np.nonzero(chosen._array)[len(shape) - len(own) :]
    arrays = [
        place if n == shape[k - len(own)] else place * 0 for k, (n, place) in enumerate(zip(own, places, strict=True))
    ]
    layout = (ARRAY,) * len(own)
    return record(ops.index, (input, *arrays), {"layout": layout}, "MaskedSelectBackward0")


def _common_shape(mask: Any, tensor: Any) -> tuple[int, ...]:
    shapes = tuple(mask._array.shape), tuple(tensor._array.shape)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise _errors.broadcast_error(*shapes) from None


@overridable
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of elements that are not zero."""
    if isinstance(input._array, LevelArray):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            "aten::nonzero. Please voice your support in https://github.com/pytorch/functorch/issues/256"
        )
    array = np.asarray(input._array)
    found = np.nonzero(array) if array.ndim else (np.zeros(int(bool(array)), np.int64),) * (1 if as_tuple else 0)
    if as_tuple:
        return tuple(wrap(part) for part in found)
    if not array.ndim:
        return wrap(np.zeros((int(bool(array)), 0), np.int64))
    return wrap(np.stack(found, 1))


@overridable
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Take elements along a dimension, broadcasting the others."""
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {_base.dtype_of(indices)._scalar_name}"
        )
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    own, wanted = list(input._array.shape), list(indices._array.shape)
    if len(own) != len(wanted):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(own)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    axis = _errors.wrap_dim(dim, len(own))
    for k, (a, b) in enumerate(zip(own, wanted, strict=True)):
        if k != axis and a != b:
            if 1 not in (a, b):
                raise _errors.broadcast_error(tuple(own), tuple(wanted))
            own[k] = wanted[k] = b if a == 1 else a
    return gather(expand(input, *own), dim, expand(indices, *wanted))
