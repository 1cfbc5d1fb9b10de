"""Python numbers that become elements of a tensor, with torch's refusals."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from .. import _dtypes

C_NAMES = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


@cache
def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    described = _dtypes.from_numpy(dtype)
    if described.kind == _dtypes.INT_KIND:
        return _dtypes._accepted_range(described)
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


def _overflow(name: str) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
