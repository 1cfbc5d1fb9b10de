"""Creating tensors."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import _dtypes
from .._core.arrays import LevelArray
from .._core.levels import innermost_batch_level
from .._device import device as device_type
from .._device import get_default_device
from .._modes import current_mode
from ..overrides import overridable
from . import _base
from ._base import LEAF, mark_born, wrap
from ._casting import device_of
from ._layout import ordered, output_order, repeats
from ._record import mark_inference
from ._shaping import sizes_from
from ._views import write_array


def finish(array: Any, device: Any = None, requires_grad: bool = False) -> Any:
    """Make the tensor that a creation function returns."""
    if device is None and get_default_device().type != "cpu":
        device = get_default_device()
    if device is not None:
        device = device_type(device) if not isinstance(device, device_type) else device
        if device.type != "cpu":
            from ._devices import place_array

            array = place_array(array, device)
    if type(array) is np.ndarray and not array.ndim:
        array = array[()]  # a NumPy scalar until its memory matters: five times quicker
    tensor = wrap(array)
    mode = current_mode()
    if mode.inference:
        mark_inference(tensor)
    if mode.transforms:
        mark_born(tensor)
    if requires_grad:
        if array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor._edge = LEAF
    return tensor


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """Make a tensor of Python numbers, nested lists or a NumPy array; the data is copied."""
    if isinstance(data, _base.Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        result = data.detach().clone()
        result = result if dtype is None else result.to(dtype)
        result = result if device is None else result.to(device)
        return result.requires_grad_(requires_grad)
    return finish(_dtypes.array_from_python(data, dtype), device, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Make a tensor, sharing memory with a tensor or NumPy array where that is possible."""
    if isinstance(data, _base.Tensor):
        result = data
    elif isinstance(data, np.ndarray) and data.dtype.kind != "O":
        result = from_numpy(data)
    else:
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None:
        result = result.to(dtype)
    return result if device is None else result.to(device)


asarray = as_tensor


def from_numpy(array: Any) -> Any:
    """Make a tensor on the memory of a NumPy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    _dtypes.from_numpy(array.dtype)
    _dtypes.refuse_negative_strides(array)
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders "
            "is currently not supported."
        )
    return wrap(np.asarray(array))


def _numpy_dtype(dtype: Any) -> Any:
    return (_dtypes.get_default_dtype() if dtype is None else dtype).numpy


def _sizes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    if "size" in kwargs:
        args = (kwargs.pop("size"),)
    sizes = sizes_from(args)
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{', '.join(map(str, sizes))}]")
    return sizes


def _maker(name: str, make: Any) -> Any:
    def create(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any) -> Any:
        shape = _sizes(size, rest)
        for ignored in ("layout", "pin_memory", "out", "memory_format"):
            rest.pop(ignored, None)
        if rest:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(rest))}'")
        return finish(make(shape, _numpy_dtype(dtype)), device, requires_grad)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Make a tensor of {name}."
    return create


zeros = _maker("zeros", np.zeros)
ones = _maker("ones", np.ones)
empty = _maker("empty", np.zeros)  # zeroed: reading uninitialised memory is nobody's wish


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> Any:
    """Make a tensor filled with one value."""
    if isinstance(fill_value, _base.Tensor):
        fill_value = fill_value.item()
    dtype = _dtypes.infer_from_python(fill_value) if dtype is None else dtype
    shape = sizes_from((size,))
    array = np.empty(shape, dtype.numpy)
    array[...] = fill_value
    return finish(array, device, requires_grad)


def _like_maker(name: str, fill: Any) -> Any:
    def create(
        input: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        layout: Any = None,
    ) -> Any:
        array = input._array
        numpy_dtype = array.dtype if dtype is None else dtype.numpy
        if isinstance(array, LevelArray):
            from .._core.primitive import vocabulary

            out = vocabulary.astype(vocabulary.zeros_like(array), dtype=numpy_dtype)
            out = out + fill if fill else out
            from ._views import own_memory

            return finish(own_memory(out), None, requires_grad)
        # torch keeps the order of the strides
        if repeats(array):
            out = ordered(np.full(array.shape, fill, numpy_dtype), output_order(array.shape, [array.strides]))
        else:
            out = np.full_like(array, fill, dtype=numpy_dtype, order="K", subok=False)
        return finish(out, device_of(input) if device is None else device, requires_grad)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Make a tensor like another: {name}."
    return overridable(create)


zeros_like = _like_maker("zeros_like", 0)
ones_like = _like_maker("ones_like", 1)
empty_like = _like_maker("empty_like", 0)


def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> Any:
    """Make a tensor like another, filled with one value."""
    result = zeros_like(input, dtype=dtype, device=device, requires_grad=requires_grad)
    write_array(result, np.asarray(fill_value).astype(result._array.dtype)[()])
    return result


def arange(*args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any) -> Any:
    """Count from start to end by a step."""
    args = (*args, *[rest.pop(k) for k in ("start", "end", "step") if k in rest])
    args = tuple(a.item() if isinstance(a, _base.Tensor) else a for a in args)
    start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        integral = all(isinstance(a, int) for a in (start, end, step))
        dtype = _dtypes.int64 if integral else _dtypes.get_default_dtype()
    count = math.ceil((end - start) / step)
    values = start + np.arange(count) * step
    return finish(values.astype(dtype.numpy), device, requires_grad)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make `steps` evenly spaced values, ends included; counted from both ends, as torch does."""
    numpy_dtype = _numpy_dtype(dtype)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    step = (end - start) / max(steps - 1, 1)
    k = np.arange(steps)
    values = np.where(k < steps / 2, start + step * k, end - step * (steps - 1 - k))
    if steps == 1:
        values = np.array([start])
    return finish(values.astype(numpy_dtype), device, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Make the identity matrix."""
    return finish(np.eye(n, n if m is None else m, dtype=_numpy_dtype(dtype)), device, requires_grad)


def new_maker(name: str, make: Any) -> Any:
    """Make a method such as `new_zeros`: dtype and device of the tensor; under vmap, one value for each sample."""

    def method(
        self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
    ) -> Any:
        shape = _sizes(size, rest)
        numpy_dtype = self._array.dtype if dtype is None else dtype.numpy
        level = innermost_batch_level()
        if level is not None and isinstance(self._array, LevelArray):
            from .._core.arrays import Batched

            return finish(Batched(level, make((level.size, *shape), numpy_dtype)), None, requires_grad)
        return finish(make(shape, numpy_dtype), device_of(self) if device is None else device, requires_grad)

    method.__name__ = name
    method.__doc__ = f"Make a tensor of this one's dtype: {name}."
    return method


new_zeros = new_maker("new_zeros", np.zeros)
new_ones = new_maker("new_ones", np.ones)
new_empty = new_maker("new_empty", np.zeros)


def new_full(
    self: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make a tensor of this one's dtype filled with a value."""
    result = new_zeros(self, size, dtype=dtype, device=device)
    result.fill_(fill_value)
    return result.requires_grad_(requires_grad) if requires_grad else result


def new_tensor_method(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Make a tensor of this one's dtype from data."""
    return tensor(
        data, dtype=_base.dtype_of(self) if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Make a 0-d tensor."""
    return finish(np.array(value, _numpy_dtype(dtype)), device, requires_grad)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Expand vectors to grids."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing == "xy" and len(tensors) >= 2:
        second, first, *rest = meshgrid(tensors[1], tensors[0], *tensors[2:], indexing="ij")
        return (first, second, *rest)
    n = len(tensors)
    shape = [t.numel() for t in tensors]
    return tuple(t.reshape(*[-1 if k == j else 1 for j in range(n)]).expand(*shape) for k, t in enumerate(tensors))
