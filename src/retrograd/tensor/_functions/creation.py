"""Creating tensors."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from ... import _dtypes, _errors, _settings
from ..._core.arrays import Batched, LevelArray, is_meta
from ..._core.levels import innermost_batch_level
from ..._core.primitive import vocabulary
from ..._device import chosen_device, get_default_device, preserve_format, strided
from ..._device import device as device_type
from ..._device import memory_format as memory_format_type
from ..._graph.cuts import note_cut
from ..._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ..._python_data import array_from_python, infer_from_python
from ..._stored import as_storage_only
from ..._tracebacks import hide
from ..._warnings import warn
from ...overrides import MISSING, answered_by_name, called, declared, overridable, overridable_as, refuses_itself
from .. import _base
from .._aliasing.views import own_memory, write_array
from .._base import LEAF, mark_born, wrap
from .._object.devices import place_array, without_elements
from .._object.formats import laid_out_in
from .._object.layout import ordered, output_order, repeats
from .._object.numbers import element_of
from .._recording.descriptions import MADE
from .._recording.out import write as write_out
from .._recording.record import mark_inference
from .casting import CPU, PYTHON_TYPES, device_of

NDARRAY = np.ndarray
STORED_NUMBERS = _dtypes.STORED_NUMBERS
F32 = np.dtype(np.float32)
DATA_TYPES = frozenset((list, tuple, float, int, bool, complex, NDARRAY))


def finish(array: Any, device: Any = None, requires_grad: bool = False) -> Any:
    """Make the tensor that a creation function returns."""
    if device is not CPU and (device is not None or chosen_device() is not None):
        array = _placed(array, get_default_device() if device is None else device)
    if (d := array.dtype) is not F32 and d.num in STORED_NUMBERS:
        array = as_storage_only(array)
    elif type(array) is NDARRAY and not array.ndim:
        array = array[()]  # a NumPy scalar until its memory matters: five times quicker
    tensor = _base.new_tensor()
    tensor._array = array
    tensor._edge = tensor._storage = tensor._extra = None
    mode = read_mode()
    if mode is not PLAIN and mode is not NO_GRAD:
        mode = current_mode()
        if mode.inference:
            mark_inference(tensor)
        if mode.recording is not None and isinstance(array, _base.RAW):
            tensor._array = mode.recording.constant(array)
        if mode.transforms:
            mark_born(tensor)
    if requires_grad is not False:
        if requires_grad is not True:
            refuse_options(None, None, requires_grad)
        elif array.dtype.kind not in "fcV":
            raise RuntimeError(_errors.ONLY_FLOATS)
        else:
            tensor._edge = LEAF
    return tensor


def _placed(array: Any, device: Any) -> Any:
    """Bring a new array to a device."""
    device = device_type(device) if not isinstance(device, device_type) else device
    if device.type == "cpu":
        return array
    return place_array(array, device)


def for_device(device: Any, make: Any) -> Any:
    """Return what makes an array of sizes and a dtype: `make`, or on the meta device what makes no elements."""
    return make if not is_for_meta(device) else without_memory


def is_for_meta(device: Any) -> bool:
    """Tell whether a device, or the default one for None, has no memory."""
    device = get_default_device() if device is None else device
    return (device if isinstance(device, device_type) else device_type(device)).type == "meta"


def without_memory(sizes: Any, dtype: np.dtype[Any]) -> Any:
    """Make an array that has a shape and no elements. See Note [Meta arrays]."""
    from ..._core.meta_arrays import fresh

    return fresh(sizes, dtype)


def _of_data(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """Stand for the signature of `tensor`."""


@refuses_itself
def tensor(
    data: Any = MISSING,
    *more: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Make a tensor of Python numbers, nested lists or a NumPy array; the data is copied.

    Args:
        data: numbers, in nested sequences; an array; or a tensor, whose graph is not followed
        dtype: found from the data if it is not given: bool, int64, complex, or the default float dtype
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        pin_memory: for torch's sake

    Example:
        >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        tensor([[1., 2.],
                [3., 4.]])
        >>> torch.tensor(5), torch.tensor([True, False])
        (tensor(5), tensor([ True, False]))
    """
    try:
        if more or pin_memory is not False or requires_grad is None:
            if more or pin_memory is None or requires_grad is None:
                raise TypeError("tensor() takes one positional argument, and flags that are bools")
            refuse_options(None, pin_memory, requires_grad)
        if type(data) is float and dtype is None and -1e38 < data < 1e38:
            single = _dtypes.get_default_dtype().numpy
            if single.itemsize > 2:
                return finish(single.type(data), device, requires_grad)
        dtype = None if dtype is None else as_dtype(dtype, "tensor")
        if isinstance(data, _base.Tensor):
            warn(
                "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
            )
            result = data.detach().clone()
            result = result if dtype is None else result.to(dtype)
            result = result if device is None else result.to(device)
            if (edge := _base._edge_slot.__get__(data)) is not None:
                note_cut("tensor(...)", data, edge, result)
            return result.requires_grad_(requires_grad)
        if type(data) not in DATA_TYPES and hasattr(type(data), "untyped_storage"):
            from .._object.exchange import of_other_torch

            return of_other_torch(data).to(device, dtype, copy=True).requires_grad_(requires_grad)
        try:
            array = array_from_python(data, dtype)
        except TypeError:
            from .._object.exchange import without_other_torch

            if (numbers := without_other_torch(data)) is data:
                raise
            array = array_from_python(numbers, dtype)
        return finish(array, device, requires_grad)
    except Exception as error:
        try:
            return answered_by_name(tensor, locals(), error)
        except Exception as refusal:
            hide(refusal)
            raise


tensor.__wrapped__ = _of_data  # type: ignore[attr-defined]


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Make a tensor, sharing memory with a tensor or NumPy array where that is possible.

    Args:
        data: what `torch.tensor` takes; a tensor of this dtype and device is returned as it is, with its graph
        dtype: that of the data if it is not given
        device: that of the data if it is not given

    Example:
        >>> x = torch.tensor([1, 2])
        >>> torch.as_tensor(x) is x
        True
    """
    dtype = None if dtype is None else as_dtype(dtype, "as_tensor")
    if isinstance(data, _base.Tensor):
        result = data
    elif isinstance(data, np.ndarray) and data.dtype.kind != "O":
        result = from_numpy(data)
    elif hasattr(type(data), "untyped_storage"):
        from .._object.exchange import of_other_torch

        result = of_other_torch(data)
    else:
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None:
        result = result.to(dtype)
    if device is None:
        device = chosen_device()
    return result if device is None else result.to(device)


@declared(seen=False)
def from_numpy(array: Any) -> Any:
    """Make a tensor on the memory of a NumPy array: writes into one are seen in the other.

    Args:
        array: a NumPy array of numbers or booleans

    Example:
        >>> import numpy as np
        >>> array = np.arange(3)
        >>> x = torch.from_numpy(array)
        >>> array[0] = 7
        >>> x
        tensor([7, 1, 2])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    _dtypes.from_numpy(array.dtype)
    _dtypes.refuse_negative_strides(array)
    if not array.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders "
            "is currently not supported."
        )
    return wrap(as_storage_only(np.asarray(array)))


def as_dtype(dtype: Any, name: str) -> _dtypes.dtype:
    """Return a `dtype=` argument: torch takes Python's number types as well."""
    if isinstance(dtype, _dtypes.dtype):
        return dtype
    found = PYTHON_TYPES.get(dtype) if isinstance(dtype, type) else None
    if found is None:
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return found


def numpy_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """Return NumPy's dtype for a `dtype=` argument, or for the default."""
    return (_dtypes.get_default_dtype() if dtype is None else as_dtype(dtype, name)).numpy


def sizes_of(name: str, args: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Read the sizes of a new tensor, given as numbers, as a sequence or by keyword."""
    if size is not None:
        args = (size,)
    elif not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    if given and type(given[0]) is bool:  # torch looks at the first only
        raise TypeError(f"{name}(): a size is a bool")
    sizes = tuple([index(n) for n in given])
    if sizes and min(sizes) < 0:
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(sizes)}: [{', '.join(map(str, sizes))}]"
        )
    return sizes


def refuse_options(layout: Any, pin_memory: Any, requires_grad: Any = False) -> None:
    """Refuse what this library lacks (other layouts, pinned memory) and flags that are not flags."""
    for name, flag in (("pin_memory", pin_memory), ("requires_grad", requires_grad)):
        if flag is not None and not isinstance(flag, bool):
            raise TypeError(f"argument '{name}' must be bool, not {type(flag).__name__}")
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout} is not supported: retrograd's tensors are strided")
    if pin_memory:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )


def options_of(name: str, options: dict[str, Any], out: bool = True) -> tuple[Any, Any, Any, bool]:
    """Return `out`, `dtype`, `device` and `requires_grad`: what functions that make tensors take by name. Others are refused."""
    target = options.pop("out", None) if out else None
    dtype, device = options.pop("dtype", None), options.pop("device", None)
    requires_grad = options.pop("requires_grad", False)
    refuse_options(options.pop("layout", None), options.pop("pin_memory", None))
    if options:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(options))}'")
    return target, dtype, device, requires_grad


def in_format(array: Any, memory_format: Any) -> Any:
    """Lay new memory out in a memory format."""
    if not isinstance(memory_format, memory_format_type):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return laid_out_in(array, memory_format)


def into(out: Any, dtype: Any, create: Any) -> Any:
    """Write what `create(dtype)` makes into `out=`, whose dtype decides."""
    if not isinstance(out, _base.Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    own = _base.dtype_of(out)
    if dtype is not None and dtype is not own:
        raise RuntimeError(f"dtype {dtype._scalar_name} does not match dtype of out parameter ({own._scalar_name})")
    return write_out(out, create(own))


def _maker(name: str, make: Any) -> Any:
    takes_format = name == "empty"

    def create(
        *shape: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        out: Any = None,
        layout: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> Any:
        try:
            if memory_format is not None and not takes_format:
                raise TypeError(f"{name}() got an unexpected keyword argument 'memory_format'")
            if out is not None:
                return into(out, dtype, lambda own: create(*shape, size=size, dtype=own))
            sizes = (
                shape if len(shape) == 1 and type(shape[0]) is int and shape[0] >= 0 else sizes_of(name, shape, size)
            )
            if (
                layout is not None
                or pin_memory is not None
                or (requires_grad is not False and requires_grad is not True)
            ):
                refuse_options(layout, pin_memory, requires_grad)
            if device is None and chosen_device() is None:
                place, array = CPU, make(sizes, numpy_dtype(dtype, name))
            else:
                place, array = device, for_device(device, make)(sizes, numpy_dtype(dtype, name))
            return finish(array if memory_format is None else in_format(array, memory_format), place, requires_grad)
        except Exception as error:
            try:
                return answered_by_name(create, locals(), error)
            except Exception as refusal:
                hide(refusal)
                raise

    return refuses_itself(called(create, name, MADE[name]))


def _ones(sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    array = np.empty(sizes, dtype)  # NumPy's `ones` takes twice as long
    if dtype is not F32 and dtype.num in STORED_NUMBERS:
        array = as_storage_only(array)
    _fill(array, 1)
    return array


def _fill(array: Any, value: Any) -> None:
    """Fill memory; NumPy writes dtypes that are not its own one by one, and the same bits as integers ten times as quickly."""
    if type(array) is NDARRAY and array.dtype.kind == "V" and array.dtype.itemsize == 2:
        array.view("u2").fill(np.asarray(value, array.dtype).view("u2"))
    else:
        array.fill(value)


def unset(sizes: Any, dtype: np.dtype[Any]) -> Any:
    """Return memory that nobody has written. It is zeroed: reading uninitialised memory is nobody's wish."""
    return marked(np.zeros(sizes, dtype))


def marked(array: Any) -> Any:
    """Return new memory filled with NaN or the largest number, if algorithms are to be deterministic."""
    if _settings.marks_unset_memory():
        kind = array.dtype.kind
        value = True if kind == "b" else np.iinfo(array.dtype).max if kind in "iu" else math.nan
        array.fill(element_of(value, array.dtype))
    return array


zeros = _maker("zeros", np.zeros)
ones = _maker("ones", _ones)
empty = _maker("empty", unset)


def full(size: Any, fill_value: Any, **options: Any) -> Any:
    """Make a tensor filled with one value.

    Args:
        size: a sequence of sizes
        fill_value: a number; it also decides the dtype if none is given
        **options: `dtype`, `device`, `requires_grad`, `out` as for `torch.zeros`

    Example:
        >>> torch.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]])
    """
    out, dtype, device, requires_grad = options_of("full", options) if options else (None, None, None, False)
    if out is not None:
        return into(out, dtype, lambda own: full(size, fill_value, dtype=own))
    if type(fill_value) is float and dtype is None:
        dtype = _dtypes.get_default_dtype()
        is_usual = device is None and type(size) is tuple and dtype.numpy.itemsize > 2
        if is_usual and -1e38 < fill_value < 1e38 and chosen_device() is None:
            array = np.empty(sizes_of("full", (size,)), dtype.numpy)
            array.fill(fill_value)
            return finish(array, CPU, requires_grad)
    if isinstance(fill_value, _base.Tensor) and not fill_value._array.ndim:
        dtype = _base.dtype_of(fill_value) if dtype is None else dtype
        fill_value = fill_value.item()
    if not isinstance(fill_value, (bool, int, float, complex, np.generic)) or not isinstance(size, (list, tuple)):
        raise TypeError("full(): the value is no number, or the sizes are no tuple")
    dtype = infer_from_python(fill_value) if dtype is None else as_dtype(dtype, "full")
    array = as_storage_only(for_device(device, np.empty)(sizes_of("full", (size,)), dtype.numpy))
    _fill(array, element_of(fill_value, dtype.numpy, loosely=True))
    return finish(array, device, requires_grad)


def _like_maker(name: str, fill: Any) -> Any:
    def create(
        input: Any,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:
        if layout is not None or pin_memory:
            refuse_options(layout, pin_memory)
        array = input._array
        wanted = array.dtype if dtype is None else as_dtype(dtype, name).numpy
        if isinstance(array, LevelArray):
            out = vocabulary.astype(vocabulary.zeros_like(array), dtype=wanted)
            out = out + fill if fill else out
            return finish(own_memory(out), None, requires_grad)
        if device is not None or type(array) is not NDARRAY:
            array = _shown_on(array, device)
        if fill != 0 and memory_format is None and type(array) is NDARRAY and array.flags.c_contiguous:
            out = np.empty(array.shape, wanted)
        else:
            out = like(array, wanted, memory_format)
        if fill:
            as_storage_only(out).fill(fill)
        elif fill is None:
            marked(out)
        return finish(
            out, device if device is not None else CPU if type(array) is NDARRAY else device_of(input), requires_grad
        )

    return overridable_as(name, create, MADE[name])


def _shown_on(array: Any, device: Any) -> Any:
    """Return what has the shape and the strides of an array, and makes arrays like it for a device; None for its own."""
    if device is None:
        return array
    if is_for_meta(device):
        return array if is_meta(array) else without_elements(array)
    return array.standin if is_meta(array) else array  # NumPy looks at its strides, and reads nothing


def like(array: Any, dtype: np.dtype[Any], memory_format: Any = None) -> Any:
    """Return zeros in the shape of an array; by default, torch keeps the order of the strides."""
    if memory_format is not None and memory_format is not preserve_format:
        return in_format(np.zeros(array.shape, dtype), memory_format)
    if type(array) is np.ndarray and array.flags.c_contiguous:
        return np.zeros(array.shape, dtype)
    if isinstance(array, (np.ndarray, np.generic)):
        if repeats(array):
            return ordered(np.zeros(array.shape, dtype), output_order(array.shape, [array.strides]))
        return np.zeros_like(array, dtype=dtype, order="K", subok=False)
    return np.zeros(array.shape, dtype)  # of an array on another device, where `finish` puts it


zeros_like = _like_maker("zeros_like", 0)
ones_like = _like_maker("ones_like", 1)
empty_like = _like_maker("empty_like", None)


@overridable
def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """Make a tensor with the shape, dtype and device of another, filled with one value.

    Args:
        input: the other tensor
        fill_value: a number
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> torch.full_like(torch.zeros(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    if layout is not None or pin_memory:
        refuse_options(layout, pin_memory)
    if dtype is memory_format is None and isinstance(input, _base.Tensor) and type(fill_value) is float:
        array = input._array
        if type(array) is NDARRAY and array.dtype.kind == "f" and array.itemsize > 2 and array.flags.c_contiguous:
            made = np.empty(array.shape, array.dtype)
            made.fill(element_of(fill_value, array.dtype))
            return finish(made, CPU if device is None else device, requires_grad)
    result = zeros_like(input, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)
    return _filled(result, fill_value)


def _filled(result: Any, value: Any) -> Any:
    """Fill a new tensor, which may require grad already."""
    if isinstance(value, _base.Tensor):
        value = value.item()
    write_array(result, element_of(value, result._array.dtype, loosely=True))
    return result


def new_maker(name: str, make: Any) -> Any:
    """Make a method such as `new_zeros`: dtype and device of the tensor; under vmap, one value for each sample."""

    def method(
        self: Any,
        *shape: Any,
        size: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        sizes = sizes_of(name, shape, size)
        if layout is not None or pin_memory:
            refuse_options(layout, pin_memory)
        wanted = self._array.dtype if dtype is None else as_dtype(dtype, name).numpy
        if type(self._array) is NDARRAY:
            if device is None:
                return finish(make(sizes, wanted), CPU, requires_grad)
            return finish(for_device(device, make)(sizes, wanted), device, requires_grad)
        level = innermost_batch_level()
        if level is not None and isinstance(self._array, LevelArray):
            return finish(Batched(level, make((level.size, *sizes), wanted)), None, requires_grad)
        place = device_of(self) if device is None else device
        return finish(for_device(place, make)(sizes, wanted), place, requires_grad)

    return called(method, name, MADE[name])


new_zeros = new_maker("new_zeros", np.zeros)
new_ones = new_maker("new_ones", _ones)
new_empty = new_maker("new_empty", unset)


def new_full(self: Any, size: Any, fill_value: Any, **options: Any) -> Any:
    """Make a tensor of this one's dtype and device, filled with a value.

    Args:
        size: a sequence of sizes
        fill_value: a number
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.tensor([1.0]).new_full((2,), 3)
        tensor([3., 3.])
    """
    return _filled(new_zeros(self, size, **options), fill_value)


def new_tensor_method(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **options: Any
) -> Any:
    """Make a tensor of this one's dtype from data."""
    return tensor(
        data, dtype=_base.dtype_of(self) if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


def scalar_tensor(s: Any, **options: Any) -> Any:
    """Make a 0-d tensor."""
    _, dtype, device, requires_grad = options_of("scalar_tensor", options, out=False)
    if isinstance(s, _base.Tensor):
        s = s.item()
    return finish(element_of(s, numpy_dtype(dtype, "scalar_tensor"), loosely=True), device, requires_grad)
