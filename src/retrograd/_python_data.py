"""Read Python data, that is numbers, nested sequences and NumPy arrays, into arrays."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import _dtypes
from ._dtypes import (
    BOOL_KIND,
    COMPLEX_KIND,
    FLOAT_KIND,
    INT_KIND,
    TWO_BYTE_FLOATS,
    accepted_range,
    bool_,
    complex128,
    default_complex,
    dtype,
    from_numpy,
    int64,
    integer_range,
    promote_types,
    refuse_negative_strides,
    type_name,
    uint64,
)
from ._stored import cast_array, convert
from ._warnings import LIST_OF_ARRAYS, warn_once

if TYPE_CHECKING:
    import numpy.typing as npt

# bool comes first because it is also an int.
_PLAIN_TYPES: Final = (bool, int, float, complex)
_MOST_DIMENSIONS: Final = 128
_SMALLEST_LONG: Final = -(1 << 63)
_LARGEST_LONG: Final = (1 << 63) - 1


def infer_from_python(value: object) -> dtype:
    """Return the type that nested Python data would become, without building it."""
    _refuse_text(value)
    _shape_of(value)
    return _infer(value)


def array_from_python(data: Any, dtype: dtype | None = None) -> npt.NDArray[Any]:
    """Build a fresh array from numbers, nested sequences or NumPy data."""
    data_type = type(data)
    if data_type is list or data_type is tuple:
        plain = _flatten_plain(data)
        if plain is not None:
            values, shape, leaf_types = plain
            packed = _pack_plain(values, leaf_types, _widest_plain(leaf_types) if dtype is None else dtype)
            if packed is not None:
                return packed.reshape(shape)
    elif data_type in _PLAIN_TYPES:
        packed = _pack_plain(data, {data_type}, _widest_plain({data_type}) if dtype is None else dtype)
        if packed is not None:
            return packed
    elif isinstance(data, np.ndarray):
        source = from_numpy(data.dtype)
        refuse_negative_strides(data)
        return cast_array(data, (dtype or source).numpy)  # type: ignore[no-any-return]
    return _read_slowly(data, dtype)


def _read_slowly(data: Any, target: dtype | None) -> npt.NDArray[Any]:
    """Walk any data in PyTorch's order of checks, so that the first fault found is the same."""
    _refuse_text(data)
    shape = _shape_of(data)
    if target is None:
        target = _infer(data)
    if 0 in shape:
        return np.empty(shape, target.numpy)
    numbers: list[Any] = []
    if target.kind == INT_KIND:
        if target is uint64:
            _convert_leaves(data, shape, 0, _as_unsigned, numbers)
            return np.array(numbers, np.uint64).reshape(shape)
        _convert_leaves(data, shape, 0, functools.partial(_as_integer, target=target), numbers)
        return np.array(numbers, np.int64).astype(target.numpy).reshape(shape)
    convert = {BOOL_KIND: _as_bool, FLOAT_KIND: _as_float, COMPLEX_KIND: _as_complex}[target.kind]
    _convert_leaves(data, shape, 0, convert, numbers)
    return _pack_rounded(numbers, target).reshape(shape)


def _convert_leaves(
    value: Any, shape: tuple[int, ...], dim: int, convert: Callable[[Any], Any], numbers: list[Any]
) -> None:
    if dim == len(shape):
        numbers.append(convert(value))
        return
    try:
        items = list(value)
    except TypeError:
        raise TypeError("not a sequence") from None
    if len(items) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(items)})")
    for item in items:
        if isinstance(item, np.ndarray):
            warn_once(LIST_OF_ARRAYS)
        _convert_leaves(item, shape, dim + 1, convert, numbers)


def _flatten_plain(data: Sequence[Any]) -> tuple[Sequence[Any], list[int], set[type]] | None:
    """Flatten evenly nested lists of plain numbers, or give up with None."""
    shape = [len(data)]
    items = data
    while items and type(items[0]) in (list, tuple):
        width = len(items[0])
        for each in items:
            if type(each) not in (list, tuple) or len(each) != width:
                return None
        shape.append(width)
        if len(shape) > _MOST_DIMENSIONS:
            return None
        items = list(chain.from_iterable(items))
    leaf_types: set[type] = set(map(type, items))
    return (items, shape, leaf_types) if leaf_types and leaf_types.issubset(_PLAIN_TYPES) else None


def _widest_plain(leaf_types: set[type]) -> dtype:
    if complex in leaf_types:
        return default_complex()
    if float in leaf_types:
        return _dtypes.get_default_dtype()
    return int64 if int in leaf_types else bool_


def _pack_plain(values: Any, leaf_types: set[type], target: dtype) -> npt.NDArray[Any] | None:
    """Convert plain numbers in one NumPy call, or leave any fault to the slow path with None."""
    if target.kind >= FLOAT_KIND:
        return None if target.kind == FLOAT_KIND and complex in leaf_types else _pack_rounded(values, target)
    if target.kind == BOOL_KIND:
        return np.array(values, np.bool_) if leaf_types == {bool} else None
    if not leaf_types <= {bool, int} or target is uint64:
        return None
    try:
        whole = np.array(values, np.int64)
    except OverflowError:
        return None
    if target is int64:
        return whole
    smallest, largest = accepted_range(target)
    return whole.astype(target.numpy) if smallest <= whole.min() and whole.max() <= largest else None


def _pack_rounded(values: Any, target: dtype) -> npt.NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        if target.stores_only:
            wide = np.array(values, np.complex128 if target.is_complex else np.float64)
            return convert(wide, target.numpy)  # type: ignore[no-any-return]
        if target.numpy in TWO_BYTE_FLOATS:
            return np.array(values, np.float32).astype(target.numpy)
        return np.array(values, target.numpy)


def _as_float(value: Any) -> float:
    # Unlike float(), ldexp takes no text and refuses in the words of the C conversion.
    return value if type(value) is float else math.ldexp(value, 0)


def _as_complex(value: Any) -> complex:
    if isinstance(value, complex):
        return value
    convert = getattr(type(value), "__complex__", None)
    return _as_float(value) if convert is None else convert(value)


def _as_bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_, float, complex)):
        return bool(value)
    return operator.index(value) != 0


def _as_integer(value: Any, target: dtype) -> int:
    smallest, largest = integer_range(target)
    if isinstance(value, float):
        if not smallest <= value <= float(largest):
            raise _overflow(target)
        number = int(value)
        # float(largest) of int64 is one more than the largest; the hardware makes it the smallest.
        return number if number <= largest else smallest
    number = operator.index(value)
    if not _SMALLEST_LONG <= number <= _LARGEST_LONG:
        raise ValueError("Overflow when unpacking long long")
    if not accepted_range(target)[0] <= number <= largest:
        raise _overflow(target)
    return number


def _as_unsigned(value: Any) -> int:
    if isinstance(value, float) or not hasattr(type(value), "__index__"):
        raise TypeError("an integer is required")
    number = operator.index(value)
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >= 1 << 64:
        raise OverflowError("int too big to convert")
    return number


def _overflow(target: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {target.name} without overflow")


def _refuse_text(value: object) -> None:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(type(value))}'")


def is_tensor(value: object) -> bool:
    """Return whether an object carries one of our types, which only tensors do."""
    return isinstance(getattr(value, "dtype", None), dtype)


def _is_sequence(value: object) -> bool:
    # Tensors and NumPy scalars have __getitem__ but stand for single numbers here.
    return (
        hasattr(type(value), "__getitem__")
        and (not isinstance(value, (dict, np.generic)) or isinstance(value, (str, bytes)))
        and not is_tensor(value)
    )


def _shape_of(data: Any) -> tuple[int, ...]:
    """Read the shape off the first item of every level."""
    shape: list[int] = []
    level = data
    while _is_sequence(level):
        length = len(level)
        shape.append(length)
        if len(shape) > _MOST_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type_name(type(level))}'")
        if length == 0:
            break
        try:
            level = level[0]
        except Exception as fault:
            described = type_name(type(level))
            raise ValueError(f"could not determine the shape of object type '{described}'") from fault
    return tuple(shape)


def _infer(value: Any) -> dtype:
    if isinstance(value, (np.generic, np.ndarray)):
        return from_numpy(value.dtype)
    for plain in _PLAIN_TYPES:
        if isinstance(value, plain):
            return _widest_plain({plain})
    if is_tensor(value):
        tensor_dtype: dtype = value.dtype
        return tensor_dtype
    _refuse_text(value)
    if not _is_sequence(value):
        raise RuntimeError(f"Could not infer dtype of {type_name(type(value))}")
    result: dtype | None = None
    for index in range(len(value)):
        item = value[index]
        if item is value:
            raise TypeError("new(): self-referential lists are incompatible")
        result = _infer(item) if result is None else promote_types(result, _infer(item))
        if result is complex128:
            break
    return _dtypes.get_default_dtype() if result is None else result
