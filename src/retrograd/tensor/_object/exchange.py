"""Memory that other libraries own or want: buffers, DLPack, and torch's older names for dtypes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import LevelArray
from ..._device import device as device_type
from ..._warnings import warn
from ...overrides import declared, refusing
from .. import _base
from .._functions.creation import as_dtype, finish, from_numpy, tensor


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Any:
    """Make a tensor of anything, sharing its memory where that is possible unless `copy` says otherwise."""
    dtype = None if dtype is None else as_dtype(dtype, "asarray")
    if isinstance(obj, _base.Tensor):
        result = obj
    elif isinstance(obj, np.ndarray):
        result = from_numpy(obj)
    elif hasattr(obj, "__dlpack__"):
        result = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        result = frombuffer(obj, dtype=_dtypes.get_default_dtype() if dtype is None else dtype)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    own = _base.dtype_of(result)
    if copy is False and dtype is not None and dtype is not own:
        raise ValueError(f"can't alias tensor with dtype '{own._scalar_name}' into dtype '{dtype._scalar_name}'.")
    result = result if dtype is None else result.to(dtype)
    result = result if device is None else result.to(device)
    if copy and (result is obj or isinstance(obj, np.ndarray)):
        result = result.clone()
    if not requires_grad:
        return result
    if result._array.dtype.kind not in "fcV":
        raise RuntimeError(_errors.ONLY_FLOATS)
    if result._edge is not None and not result.is_leaf:
        result = result.detach()
    return result.requires_grad_()


@declared(seen=False)
def frombuffer(buffer: Any, *, dtype: Any = None, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """Make a tensor on the memory of an object with a buffer, such as `bytes` or an array.

    Args:
        buffer: the object
        dtype: how its bytes are read
        count: how many elements; all by default
        offset: how many bytes are skipped
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    if dtype is None:
        raise TypeError('frombuffer() missing 1 required positional arguments: "dtype"')
    wanted = as_dtype(dtype, "frombuffer").numpy
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size, item = view.nbytes, wanted.itemsize
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count < 0:
        if (size - offset) % item:
            raise ValueError(
                f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
                f"({item})"
            )
        count = (size - offset) // item
    elif offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    array = np.frombuffer(view, np.uint8)[offset : offset + count * item].view(wanted)
    if view.readonly:
        warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer "
            "to protect its data or make it writable before converting it to a tensor."
        )
    return finish(array, None, requires_grad)


# ---- DLPack, of which NumPy does the work ----
class _Capsule:
    """Shows a bare capsule, the older form of DLPack, as an array that has it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU: NumPy raises for a capsule from elsewhere


class _Memory:
    """Shows an array's memory as writable: NumPy takes what an older capsule brings for read-only, torch does not."""

    def __init__(self, array: Any) -> None:
        self.array = array  # which stays alive as long as its memory is used
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _imported(source: Any) -> Any:
    array = np.from_dlpack(source)
    return finish(array if array.flags.writeable else np.asarray(_Memory(array)))


@refusing
@declared(seen=False, forms="function")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Make a tensor on the memory of another library's array, or on a copy of it."""
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        try:
            return _imported(_Capsule(ext_tensor))
        except ValueError:  # no capsule, or used up
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
                "might have already constructed a tensor from it once."
            ) from None
    if device is not None and not isinstance(device, (str, device_type)):
        raise AssertionError(f"from_dlpack: unsupported device type: {device.__class__}")
    if isinstance(ext_tensor, _base.Tensor):
        if not _base.dtype_of(ext_tensor).stores_only or ext_tensor.requires_grad:
            __dlpack__(ext_tensor)  # which refuses what cannot be shared
        result = ext_tensor.detach()
    else:
        result = _imported(ext_tensor)
    result = result if device is None else result.to(device)
    return result.clone() if copy else result


def of_other_torch(tensor: Any) -> Any:
    """Make a tensor on the memory of one of an installed torch, outside its graph."""
    resolved = tensor.detach().resolve_conj().resolve_neg()
    if str(resolved.dtype) == "torch.bfloat16":  # of which NumPy knows nothing
        return from_dlpack(resolved.float()).to(_dtypes.bfloat16)
    return from_dlpack(resolved)


def without_other_torch(data: Any) -> Any:
    """Return nested sequences with lists of NumPy's numbers for tensors of an installed torch; the same where there is none."""
    if isinstance(data, (list, tuple)):
        items = [without_other_torch(item) for item in data]
        return data if all(new is old for new, old in zip(items, data, strict=True)) else items
    if not hasattr(data.__class__, "untyped_storage") or isinstance(data, _base.Tensor):
        return data
    return _nested(of_other_torch(data)._array)


def _nested(array: Any) -> Any:
    return [_nested(row) for row in array] if array.ndim else array[()]


@refusing
@declared(seen=False, forms="function")
def to_dlpack(tensor: Any) -> Any:
    """Export a tensor's memory as a capsule, which `from_dlpack` takes once."""
    if not isinstance(tensor, _base.Tensor):
        given = tensor.__class__.__name__
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {given}")
    return tensor.detach().__dlpack__()


@declared(forms="method")
def __dlpack__(self: Any, **options: Any) -> Any:  # noqa: N807 - a method of Tensor
    """Export the memory as a DLPack capsule."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if isinstance(self._array, LevelArray):
        raise BufferError("Can't export a tensor that belongs to a transform")
    if self.is_meta:
        raise BufferError("Cannot pack tensors on meta")
    array = _base.materialise(self)
    options = {key: value for key, value in options.items() if value is not None}
    return array.__dlpack__(**options)


@declared(forms="method")
def __dlpack_device__(self: Any) -> tuple[Any, int]:  # noqa: N807 - a method of Tensor
    """Return the kind and number of the device, in DLPack's terms."""
    return _base.materialise(self).__dlpack_device__()  # type: ignore[no-any-return]


# ---- old names ----
def type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return torch's old name for the dtype, or convert to a dtype given by its old name."""
    from .old_types import dtype_of_old_name, old_name

    if dtype is None:
        return old_name(_base.dtype_of(self))
    if not isinstance(dtype, (builtins.type, str, _dtypes.dtype)):
        raise TypeError("dtype must be a type, str, or dtype object")
    return self.to(dtype if isinstance(dtype, _dtypes.dtype) else dtype_of_old_name(dtype))


def new(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a tensor of this one's dtype as torch's old constructors do."""
    from .old_types import construct

    return construct(_base.dtype_of(self), *args, **kwargs)


def is_pinned(self: Any, device: Any = None) -> bool:
    """Tell whether the memory is pinned, which it never is here."""
    return False
