"""Changing dtype and device, and leaving for Python and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import Dual, LevelArray, is_meta, raw_leaf
from ..._core.numpy_namespace import _NUMPY_TYPES
from ..._core.primitive import check_alive
from ..._device import device as device_type
from ..._device import preserve_format
from ..._graph.cuts import note_reading
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._ops import shape as s
from ..._thresholds import LARGE
from ..._tracebacks import hide
from ..._warnings import REAL_PART_ONLY, warn, warn_once
from ...overrides import answered, arguments, refuses_itself
from .. import _base
from .._aliasing.view_nodes import detached
from .._base import LEAF, edge_of, wrap
from .._object.devices import device_of_array, move, need_known, on_host
from .._object.formats import is_laid_out_in, laid_out_in, need_format, order_in, suggested
from .._object.layout import laid_out_like
from .._recording.flat import CAST_AT_ONCE, EXACT, REAL
from .._recording.record import record

CPU = device_type("cpu")
NDARRAY = np.ndarray
NUMBERS = frozenset(np.dtype(code).type for code in "?bBhilefdFD")  # NumPy's own, which have `item`
PYTHON_TYPES = {float: _dtypes.float64, int: _dtypes.int64, bool: _dtypes.bool_, complex: _dtypes.complex128}


def device_of(tensor: Any) -> Any:
    """Return the device of a tensor's memory."""
    array = raw_leaf(tensor._array)
    if type(array) in _NUMPY_TYPES:
        return CPU
    return device_of_array(array)


def to_dtype(tensor: Any, dtype: Any, copy: bool = False) -> Any:
    """Convert to a dtype; the same tensor if it has it already."""
    array, wanted = tensor._array, dtype.numpy
    known = array.dtype
    if (known is wanted or known == wanted) and not copy:
        return tensor
    edge = _base._edge_slot.__get__(tensor)
    real = known.char in REAL and wanted.char in CAST_AT_ONCE
    if edge is None and type(array) is NDARRAY and real and type(tensor) in EXACT:
        if ((mode := read_mode()) is PLAIN or mode is NO_GRAD) and array.size < LARGE and array.flags.c_contiguous:
            return wrap(array.astype(wanted), None, None)  # there is nothing to record
    elif wanted.kind in "biu" and edge is not None:
        note_reading(f"cast to {dtype}", tensor if edge is LEAF else edge)
    if (known.kind == "c" or known.fields) and not dtype.is_complex and wanted.kind != "b":
        warn_once(REAL_PART_ONLY)
    if wanted.kind in "biu" and (edge is not None or isinstance(array, LevelArray)):
        tensor = detached(tensor)  # integers have neither gradients nor tangents
    result = record(s.astype, (tensor,), {"dtype": wanted}, "ToCopyBackward0")
    if type(array) is np.ndarray and not array.flags.c_contiguous:
        result._array = laid_out_like(result._array, array)
    return result


_EXPECTED = """but expected one of:
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""
_TAKEN = frozenset({"dtype", "device", "copy", "non_blocking", "memory_format", "tensor"})


def _refuse_arguments(args: Any, kwargs: dict[str, Any]) -> TypeError:
    shown = [type(a).__name__ for a in args] + [f"{key}={type(v).__name__}" for key, v in kwargs.items()]
    if kwargs:
        shown.append("")
    return TypeError(f"to() received an invalid combination of arguments - got ({', '.join(shown)}), {_EXPECTED}")


@refuses_itself
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Convert to a dtype, a device, or those of another tensor.

    Args:
        *args: a dtype, a device, both, or another tensor
        **kwargs: `dtype`, `device`, `non_blocking`, `copy` (make a copy in any case), `memory_format`

    Returns:
        The tensor itself if nothing changes, else a copy; gradients flow through it.

    Example:
        >>> torch.tensor([1, 2]).to(torch.float64)
        tensor([1., 2.], dtype=torch.float64)
    """
    try:
        if len(args) == 1 and not kwargs and type(args[0]) is _dtypes.dtype:
            return to_dtype(self, args[0])
        dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
        memory_format, given = kwargs.get("memory_format"), list(args)
        flags = copy, kwargs.get("non_blocking", False)
        if (
            not _TAKEN.issuperset(kwargs)
            or not (dtype is None or isinstance(dtype, (_dtypes.dtype, type)))
            or any(one is not False and one is not True for one in flags)
        ):
            raise _refuse_arguments(args, kwargs)
        if "tensor" in kwargs:
            given.insert(0, kwargs["tensor"])
        if given:
            first = given.pop(0)
            if isinstance(first, _base.Tensor):
                dtype, device = _base.dtype_of(first), device_of(first)
            elif isinstance(first, (_dtypes.dtype, type)):
                dtype = first
            elif isinstance(first, (str, device_type, int)) or first is None:
                device = first
                if given and not isinstance(given[0], bool):
                    dtype = given.pop(0)
            else:
                raise _refuse_arguments(args, kwargs)
            if not all(isinstance(one, bool) for one in given) or len(given) > 2:
                raise _refuse_arguments(args, kwargs)
            copy = given[1] if len(given) == 2 else copy
        if memory_format is not None:
            _need_format("to", memory_format)
        result = self
        if device is not None:
            result = to_device(result, device if isinstance(device, device_type) else device_type(device))
        if dtype is not None:
            result = to_dtype(result, PYTHON_TYPES[dtype] if isinstance(dtype, type) else dtype)
        if copy and result is self:
            result = to_dtype(self, _base.dtype_of(self), True)
        return (
            result
            if memory_format is None or memory_format is preserve_format
            else _in_format(result, self, memory_format)
        )
    except Exception as error:
        try:
            return answered(to, (self, *args), kwargs, error)
        except Exception as refusal:
            hide(refusal)
            raise


def _need_format(name: str, memory_format: Any) -> None:
    need_format(name, memory_format)


def _in_format(result: Any, source: Any, memory_format: Any) -> Any:
    """Lay the result of a conversion out in a memory format."""
    order_in(result._array.ndim, memory_format)
    if result is source and suggested(result._array) is memory_format:
        return result
    if result is not source and is_laid_out_in(result._array, memory_format):
        return result
    if result is source:
        result = to_dtype(source, _base.dtype_of(source), True)
    result._array = laid_out_in(result._array, memory_format)
    return result


def to_device(tensor: Any, device: Any) -> Any:
    """Move a tensor to a device."""
    here = device_of(tensor)
    if device.type == here.type and (device.index is None or device.index == here.index):
        return tensor
    need_known(device)
    return move(tensor, device)


def caster(name: str, dtype: Any) -> Any:
    """Make a method such as `float()`."""

    def method(self: Any, memory_format: Any = None) -> Any:
        try:
            if memory_format is None:
                return to_dtype(self, dtype)
            _need_format(name, memory_format)
            return to(self, dtype, memory_format=memory_format)
        except Exception as error:
            hide(error)
            raise

    method.__name__ = name
    method.__doc__ = f"Convert to {dtype}."
    return method


def write_part(self: Any, value: Any, part: str) -> None:
    """Write the real or the imaginary part."""
    target = getattr(self, part)
    if isinstance(value, _base.Tensor):
        target.copy_(value)
    else:
        target.fill_(value)


NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations.\nHint: there is one value per sample and no "
    "single number for all of them: compute with the tensor itself, or return it and read its numbers after vmap."
)
NO_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet.\nHint: torch.where chooses for each sample."
)


def _value(tensor: Any, refusal: str = NO_ITEM) -> Any:
    array = tensor._array
    if isinstance(array, LevelArray):
        array = _readable(array, refusal)
    if type(array) in _NUMPY_TYPES:
        return array
    return on_host(array)


def _readable(array: Any, refusal: str) -> Any:
    """Let a user read a dual's primal; a batched value has no single number."""
    while isinstance(array, LevelArray):
        if not isinstance(array, Dual):
            if not array.level.alive:
                check_alive(array)
            raise RuntimeError(refusal)
        array = array.primal
    return array


def item(self: Any) -> Any:
    """Return the value of a tensor with one element as a Python number.

    Example:
        >>> torch.tensor([2.5]).item()
        2.5
    """
    try:
        if (edge := _base._edge_slot.__get__(self)) is not None:
            note_reading("item()", self if edge is LEAF else edge)
        return _number(self)
    except Exception as error:
        hide(error)
        raise


def _number(self: Any) -> Any:
    value = self._array
    if type(value) in NUMBERS or (type(value) is np.ndarray and value.size == 1 and value.dtype.kind != "V"):
        return value.item()
    if is_meta(raw_leaf(value)):
        return raw_leaf(value).item()  # which raises
    value = _value(self)
    if value.size != 1:
        raise RuntimeError(
            f"a Tensor with {value.size} elements cannot be converted to Scalar\nHint: tolist() gives all its numbers; x.sum(), "
            "x.mean() or x[0] give one."
        )
    return value.item() if value.dtype != _dtypes.bfloat16.numpy else float(value.reshape(())[()])


def tolist(self: Any) -> Any:
    """Return the elements as Python numbers in nested lists; of a tensor without dimensions, one number.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    try:
        if (edge := _base._edge_slot.__get__(self)) is not None:
            note_reading("tolist()", self if edge is LEAF else edge)
        value = _value(self)
        if value.dtype == _dtypes.bfloat16.numpy:
            value = value.astype(np.float32)
        return value.tolist()
    except Exception as error:
        hide(error)
        raise


def numpy(self: Any, *, force: bool = False) -> Any:
    """Return a NumPy array on the tensor's memory.

    Args:
        force: also take a tensor that requires a gradient, or is on another device: detach and copy it

    Example:
        >>> torch.tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
    """
    try:
        if force is not False and force is not True:
            arguments().check(numpy, (self,), {"force": force})
        if self.requires_grad and current_mode().grad:
            if not force:
                raise RuntimeError(
                    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
                )
            note_reading("numpy(force=True)", edge_of(self))
            return numpy(self.detach())
        array = self._array
        if isinstance(array, LevelArray):
            raise RuntimeError(
                "Cannot access data pointer of Tensor that doesn't have storage\nHint: it belongs to a transform; return it "
                "from the function first."
            )
        array = _base.materialise(self)
        if type(array) is not np.ndarray and device_of(self) != CPU:
            if force:
                return array.get()
            raise TypeError(
                f"can't convert {device_of(self)} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        if (
            array.dtype.num > 255 or array.dtype.kind == "V"
        ):  # ml_dtypes' and our own, which torch has no NumPy dtype for
            raise TypeError(f"Got unsupported ScalarType {_base.dtype_of(self)._scalar_name}")
        return (
            array[...] if type(array) is np.ndarray else array.view(np.ndarray)
        )  # not the tensor's own, which users may reshape
    except Exception as error:
        hide(error)
        raise


def to_number(kind: Any) -> Any:
    """Make `__float__`, `__int__`, ..."""

    def method(self: Any) -> Any:
        try:
            if kind is not int and self.requires_grad and current_mode().grad:
                warn(
                    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider "
                    "using tensor.detach() first."
                )
            if self._array.size != 1 and _value(self).size != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            if (edge := _base._edge_slot.__get__(self)) is not None:
                note_reading(f"{kind.__name__}()", self if edge is LEAF else edge)
            return kind(_number(self))
        except Exception as error:
            hide(error)
            raise

    return method


def truth(self: Any) -> bool:
    """Return the truth of a tensor with one element."""
    try:
        value = self._array
        if type(value) not in _NUMPY_TYPES:
            if value.size == 1 and is_meta(raw_leaf(value)):
                return bool(raw_leaf(value))  # which raises
            value = _value(self, NO_BRANCH)
        if value.size != 1:
            if value.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous\nHint: ask x.any() or x.all(); torch.where(x, a, b) "
                "chooses for each element."
            )
        return bool(value)  # NumPy's, of an array with one element of any rank
    except Exception as error:
        hide(error)
        raise


def index_number(self: Any) -> int:
    """Return an integer tensor of one element as an index."""
    try:
        value = _value(self)
        if value.dtype.kind not in "iub" or value.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(value.reshape(())[()])
    except Exception as error:
        hide(error)
        raise
