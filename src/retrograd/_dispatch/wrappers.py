"""Tensors that only say what they look like: wrappers of others, whose class computes with these in `__torch_dispatch__`."""

from __future__ import annotations

from typing import Any

from .. import _dtypes
from .._core.memory_order import dense_strides
from .._core.meta_arrays import MetaArray, with_strides
from .._device import device as device_type
from ..tensor import _base
from ..tensor._base import LEAF


class WrapperArray(MetaArray):
    """The shape, strides and dtype of a wrapper, which says where it is."""

    __slots__ = ("offset", "place")
    is_meta = False
    offset: int
    place: Any


def make_wrapper(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: Any = None,
) -> Any:
    """Make a tensor without memory."""
    if not isinstance(cls, type) or not issubclass(cls, _base.Tensor):
        raise TypeError(
            f"cls must be a type (got {type(cls).__name__})"
            if not isinstance(cls, type)
            else f"{cls} is no class of tensors"
        )
    if cls not in _base.dispatch_types:
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__\nHint: nothing else computes with a tensor that wraps others."
        )
    shape = tuple(int(n) for n in size)
    steps = dense_strides(shape) if strides is None else tuple(int(n) for n in strides)
    if len(steps) != len(shape):
        raise RuntimeError(f"Expected {len(shape)} strides for sizes {list(shape)}, got {len(steps)}")
    wanted = _dtypes.get_default_dtype() if dtype is None else dtype
    if requires_grad and not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    array = WrapperArray(with_strides(shape, steps, wanted.numpy).standin)
    array.place = device_type("cpu") if device is None else device_type(device)
    array.offset = int(storage_offset or 0)
    result: Any = object.__new__(cls)
    result._array = array
    result._storage = result._extra = None
    result._edge = LEAF if requires_grad else None
    return result
