"""Python numbers that become elements of a tensor, with torch's refusals."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ... import _dtypes
from ..._stored import cast_array

# torch's names where a number does not fit: those of C++, but integers by their widths
C_NAMES = _dtypes.CPP_NAMES | {
    name: f"{name}_t" for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int64")
}


@cache
def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    described = _dtypes.from_numpy(dtype)
    if described.kind == _dtypes.INT_KIND:
        return _dtypes.accepted_range(described)
    found = _dtypes.finfo(described)
    return found.min, found.max


def element_of(value: Any, dtype: np.dtype[Any], loosely: bool = False) -> Any:
    """Return a Python number as a NumPy scalar of a dtype; `loosely`: half precision takes infinity for what it lacks."""
    if (
        type(value) is float
        and dtype.kind == "f"
        and (dtype.itemsize == 8 or (dtype.itemsize == 4 and -1e38 < value < 1e38))
    ):
        return dtype.type(value)
    kind = dtype.kind
    if kind == "b":
        return np.bool_(bool(value))
    if dtype.num in _dtypes.STORED_NUMBERS:
        return _stored_element(value, dtype)
    half = dtype.itemsize == 2 and kind in "fV"
    if isinstance(value, complex):
        if kind != "c" and value.imag != 0:
            raise _overflow("double" if half and loosely else C_NAMES[dtype.name])
        parts: tuple[Any, ...] = (value.real, value.imag)
    else:
        parts = (value,)
    if not (half and loosely):
        low, high = _limits(dtype)
        for part in parts:
            outside = not low <= part <= high
            if outside and (kind in "iu" or math.isfinite(part)):
                raise _overflow(C_NAMES[dtype.name])
    if kind in "iu":
        return np.int64(int(parts[0])).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "c":
            return dtype.type(value)
        return np.float32(parts[0]).astype(dtype) if half else dtype.type(parts[0])


def _stored_element(value: Any, dtype: np.dtype[Any]) -> Any:
    described = _dtypes.from_numpy(dtype)
    if not described.is_complex:
        number = value.real if isinstance(value, complex) else value
        low, high = _limits(dtype)
        low = low if described.is_signed or described.kind == _dtypes.INT_KIND else -high  # a sign is dropped
        inside = low <= number <= high or (described.is_floating_point and not math.isfinite(number))
        if not inside or number != value:
            raise _overflow(C_NAMES[described.name])
        value = int(number) % (1 << 8 * dtype.itemsize) if described.kind == _dtypes.INT_KIND else number
    return cast_array(np.asarray(value), dtype)


def _overflow(name: str) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
