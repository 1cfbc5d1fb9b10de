"""Changing dtype and device, and leaving for Python and NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _dtypes
from .._core.arrays import LevelArray, raw_leaf
from .._device import device as device_type
from .._modes import current_mode
from .._ops import shape as s
from . import _base
from ._record import record

CPU = device_type("cpu")


def device_of(tensor: Any) -> Any:
    """Return the device of a tensor's memory."""
    array = raw_leaf(tensor._array)
    if isinstance(array, (np.ndarray, np.generic)):
        return CPU
    return device_type("cuda", array.device.id)


def to_dtype(tensor: Any, dtype: Any, copy: bool = False) -> Any:
    """Convert to a dtype; the same tensor if it has it already."""
    if tensor._array.dtype == dtype.numpy and not copy:
        return tensor
    return record(s.astype, (tensor,), {"dtype": dtype.numpy}, "ToCopyBackward0")


def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Convert to a dtype, a device, or those of another tensor."""
    dtype, device, copy = kwargs.pop("dtype", None), kwargs.pop("device", None), kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None), kwargs.pop("memory_format", None)
    if kwargs:
        raise TypeError(f"to() received an invalid combination of arguments - unexpected {sorted(kwargs)}")
    for arg in args:
        if isinstance(arg, _dtypes.dtype):
            dtype = arg
        elif isinstance(arg, (str, device_type)):
            device = arg
        elif isinstance(arg, _base.Tensor):
            dtype, device = _base.dtype_of(arg), device_of(arg)
        elif isinstance(arg, bool):
            continue  # non_blocking
        elif arg is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(arg).__name__})")
    result = self
    if device is not None:
        result = to_device(result, device_type(device) if isinstance(device, str) else device)
    if dtype is not None:
        result = to_dtype(result, dtype, False)
    if copy and result is self:
        result = record(s.astype, (self,), {"dtype": self._array.dtype}, "ToCopyBackward0")
    return result


def to_device(tensor: Any, device: Any) -> Any:
    """Move a tensor to a device."""
    here = device_of(tensor)
    if device.type == here.type and (device.index is None or device.index == here.index):
        return tensor
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"device type {device.type} is not supported: retrograd runs on cpu and cuda")
    from ._devices import move

    return move(tensor, device)


def caster(name: str, dtype: Any) -> Any:
    """Make a method such as `float()`."""

    def method(self: Any, memory_format: Any = None) -> Any:
        return to_dtype(self, dtype, False)

    method.__name__ = name
    method.__doc__ = f"Convert to {dtype}."
    return method


NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
NO_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues .\nHint: torch.where chooses for each "
    "sample."
)


def _value(tensor: Any, refusal: str = NO_ITEM) -> Any:
    array = tensor._array
    if isinstance(array, LevelArray):
        array = _readable(array, refusal)
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def _readable(array: Any, refusal: str) -> Any:
    """Let a user read a dual's primal; a batched value has no single number."""
    from .._core.arrays import Dual

    while isinstance(array, LevelArray):
        if not isinstance(array, Dual):
            if not array.level.alive:
                from .._core.primitive import check_alive

                check_alive(array)
            raise RuntimeError(refusal)
        array = array.primal
    return array


def item(self: Any) -> Any:
    """Return the value of a tensor with one element as a Python number."""
    value = _value(self)
    if value.size != 1:
        raise RuntimeError(f"a Tensor with {value.size} elements cannot be converted to Scalar")
    return value.item() if value.dtype.kind != "V" else float(value.reshape(())[()])


def tolist(self: Any) -> Any:
    """Return the values as nested lists."""
    value = _value(self)
    if value.dtype.kind == "V":
        value = value.astype(np.float32)
    return value.tolist()


def numpy(self: Any, *, force: bool = False) -> Any:
    """Return the tensor's memory as a NumPy array."""
    if self.requires_grad and current_mode().grad:
        if not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return numpy(self.detach())
    array = self._array
    if isinstance(array, LevelArray):
        raise RuntimeError(
            "Cannot access data pointer of Tensor that doesn't have storage\nHint: it belongs to a transform; return it "
            "from the function first."
        )
    array = _base.materialise(self)
    if not isinstance(array, np.ndarray):
        if force:
            return array.get()
        raise TypeError(
            f"can't convert {device_of(self)} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if array.dtype.kind == "V":
        raise TypeError("Got unsupported ScalarType BFloat16")
    return array


def to_number(kind: Any) -> Any:
    """Make `__float__`, `__int__`, ..."""

    def method(self: Any) -> Any:
        if kind is not int and self.requires_grad and current_mode().grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider "
                "using tensor.detach() first.",
                UserWarning,
                stacklevel=2,
            )
        if _value(self).size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return kind(item(self))

    return method


def truth(self: Any) -> bool:
    """Return the truth of a tensor with one element."""
    value = _value(self, NO_BRANCH)
    if value.size != 1:
        if value.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(value.reshape(())[()])


def index_number(self: Any) -> int:
    """Return an integer tensor of one element as an index."""
    value = _value(self)
    if value.dtype.kind not in "iub" or value.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(value.reshape(())[()])
