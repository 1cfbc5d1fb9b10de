"""Operations that write straight into dense memory that no graph follows: what `x.relu_()` and the like do then.

A writer is called with the memory, of float32 or float64, and with the arguments of the method. It tells whether it has
written: what it does not know goes the long way, and so does what has to be refused. Numbers become 0-d arrays, which
NumPy's ufuncs take in half the time of Python's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.numpy_namespace import _NUMPY_TYPES
from ..._core.passes import LARGE
from ..._modes import NO_GRAD, PLAIN, read_mode
from .._recording.flat import EXACT

NDARRAY = np.ndarray
F32, F64, INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
ZERO = {dtype: np.zeros((), dtype) for dtype in (F32, F64)}
ONE = {dtype: np.ones((), dtype) for dtype in (F32, F64)}
add, subtract, multiply, divide = np.add, np.subtract, np.multiply, np.divide
maximum, minimum, negative, exp, number = np.maximum, np.minimum, np.negative, np.exp, np.array
may_share_memory = np.may_share_memory

Writer = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]


def memory_to_write(tensor: Any) -> Any:
    """Return the array of a tensor that can be written at once: dense memory that no graph follows; None if it cannot."""
    mode = read_mode()
    if type(tensor) in EXACT and (mode is NO_GRAD or (mode is PLAIN and tensor._edge is None)):
        array = tensor._array
        if type(array) is NDARRAY and array.ndim and array.flags.carray:  # ufuncs turn 0-d arrays into scalars
            storage = tensor._storage
            if storage is None or not storage.inference:
                return array
    return None


def value_beside(array: Any, other: Any) -> Any:
    """Return the array of a tensor that can be read while `array` is written at once; None if it cannot."""
    if type(other) in EXACT and (read_mode() is NO_GRAD or other._edge is None):
        value = other._array
        if type(value) in _NUMPY_TYPES:
            apart = value.base is None and array.base is not value
            if value is array or apart or not may_share_memory(array, value):
                return value
    return None


def _alike(array: Any, other: Any) -> Any:
    """Return the array of a tensor of the memory's own shape and dtype; None if it is anything else."""
    value = value_beside(array, other)
    return value if value is not None and value.dtype is array.dtype and value.shape == array.shape else None


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and -(1 << 53) < value < 1 << 53)


def _relu(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if args or kwargs:
        return False
    if array.size >= LARGE:
        _limit(array, 0, None)
    else:
        maximum(ZERO[array.dtype], array, out=array)
    return True


def _limit(array: Any, low: Any, high: Any) -> None:
    """Bound memory by numbers; of equal numbers NumPy takes the second: the memory keeps the sign of its zero."""
    dtype = array.dtype
    if array.size >= LARGE:  # where two passes take longer than one
        np.clip(array, -np.inf if low is None else low, np.inf if high is None else high, out=array)
        return
    if low is not None:
        maximum(number(low, dtype), array, out=array)
    if high is not None:
        minimum(number(high, dtype), array, out=array)


def _clamp(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if kwargs or len(args) != 2 or not (_is_number(args[0]) and _is_number(args[1])):
        return False
    _limit(array, *args)
    return True


def _clamp_min(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if kwargs or len(args) != 1 or not _is_number(args[0]):
        return False
    _limit(array, args[0], None)
    return True


def _clamp_max(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if kwargs or len(args) != 1 or not _is_number(args[0]):
        return False
    _limit(array, None, args[0])
    return True


def _sigmoid(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if args or kwargs:
        return False
    one = ONE[array.dtype]
    negative(array, array)
    exp(array, array)
    add(array, one, array)
    divide(one, array, array)
    return True


def _lerp(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if kwargs or len(args) != 2 or not _is_number(args[1]):
        return False
    end = _alike(array, args[0])
    if end is None:
        return False
    weight = number(args[1], array.dtype)
    step = subtract(end, array)
    if -0.5 < weight.item() < 0.5:
        add(array, multiply(step, weight, step), array)
    else:  # from the nearer end
        subtract(end, multiply(step, 1 - weight, step), array)
    return True


def _added(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any], product: bool) -> bool:
    """Add a number of times a product or a quotient."""
    value = kwargs.get("value", 1)
    if len(args) != 2 or len(kwargs) > 1 or (kwargs and "value" not in kwargs) or not _is_number(value):
        return False
    one, other = _alike(array, args[0]), _alike(array, args[1])
    if one is None or other is None:
        return False
    if value == 1:
        term = one * other if product else one / other
    elif product:
        term = one * number(value, array.dtype)
        multiply(term, other, term)
    else:
        term = one / other
        multiply(term, number(value, array.dtype), term)
    add(array, term, array)
    return True


def _places(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
    """Return the indices, all of them inside, and the values of a write into a vector; None if there is more to it."""
    if kwargs or len(args) != 3 or type(args[0]) is not int or args[0] or array.ndim != 1 or type(args[1]) not in EXACT:
        return None
    at, values = args[1]._array, value_beside(array, args[2])
    if type(at) is not NDARRAY or at.dtype is not INT64 or at.ndim != 1 or values is None:
        return None
    if values is array or values.dtype is not array.dtype or values.shape != at.shape or not at.size:
        return None
    found = at.tolist() if at.size < 16 else (int(at.min()), int(at.max()))
    size = array.shape[0]
    for place in found:
        if place < 0 or place >= size:
            return None
    return at, values


def _write_at(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    found = _places(array, args, kwargs)
    if found is None:
        return False
    array[found[0]] = found[1]
    return True


def _add_at(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    found = _places(array, args, kwargs)
    if found is None:
        return False
    add.at(array, *found)
    return True


WRITERS: dict[str, Writer] = {
    "relu": _relu,
    "clamp": _clamp,
    "clip": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "sigmoid": _sigmoid,
    "lerp": _lerp,
    "addcmul": lambda array, args, kwargs: _added(array, args, kwargs, True),
    "addcdiv": lambda array, args, kwargs: _added(array, args, kwargs, False),
    "scatter": _write_at,
    "scatter_add": _add_at,
    "index_add": _add_at,
    "index_copy": _write_at,
}
