"""Fill arrays block by block, in torch's dtypes and in torch's order."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from functools import cache
from typing import Any

import numpy as np

from .. import _thresholds

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = _thresholds.RANDOM_BLOCK
# Up to here Python's numbers are quicker than NumPy's arrays.
FEW = 16

SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
LARGEST_FLOAT = {
    "float16": 65504.0,
    "bfloat16": float.fromhex("0x1.fep127"),
    "float32": float.fromhex("0x1.fffffep127"),
    "float64": float.fromhex("0x1.fffffffffffffp1023"),
}
# The names torch prints: the ScalarType's and the C++ type's.
TORCH_NAMES = {
    "bool": ("Bool", "bool"),
    "uint8": ("Byte", "unsigned char"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long int"),
    "uint16": ("UInt16", "short unsigned int"),
    "uint32": ("UInt32", "unsigned int"),
    "uint64": ("UInt64", "long unsigned int"),
    "float16": ("Half", "c10::Half"),
    "bfloat16": ("BFloat16", "c10::BFloat16"),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "complex32": ("ComplexHalf", "c10::complex<c10::Half>"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
}
TORCH_NAMES |= {
    f"float8_{form}": (f"Float8_{form}", f"c10::Float8_{form}")
    for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
}
_SIGNED_AND_BYTE = ("uint8", "int8", "int16", "int32", "int64")
NUMBERS = (*_SIGNED_AND_BYTE, *SIGNIFICAND_BITS)


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the dtype's name, which NumPy spells out again on every access."""
    return "complex32" if dtype.fields else dtype.name  # which NumPy has as pairs of halves


def refuse_unless(dtype: np.dtype[Any], accepted: Container[str], kernel: str) -> None:
    if name_of(dtype) not in accepted:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{TORCH_NAMES[name_of(dtype)][0]}'")


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert as C++ does: to 16-bit floats by way of float32, to small integers by way of int32."""
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if name_of(dtype) in ("float16", "bfloat16"):
            values = values.astype(np.float32)
        elif dtype.kind in "iu" and dtype.itemsize < 4 and values.dtype.kind == "f":
            values = values.astype(np.int32)
        return values.astype(dtype)


def fill(shape: Sequence[int], dtype: np.dtype[Any], draw: Callable[[int], Array]) -> Array:
    """Return an array of consecutive draws, taken in blocks that fit the cache."""
    out = np.empty(math.prod(shape), dtype)
    for start in range(0, out.size, BLOCK):
        stop = min(start + BLOCK, out.size)
        out[start:stop] = cast(draw(stop - start), dtype)
    return out.reshape(shape)


def draw_complex(
    shape: Sequence[int], dtype: np.dtype[Any], draw_parts: Callable[[tuple[int, ...], np.dtype[Any]], Array]
) -> Array:
    """Draw real and imaginary parts alternately."""
    real_dtype = np.dtype({4: np.float16, 8: np.float32, 16: np.float64}[dtype.itemsize])
    return draw_parts((*shape, 2), real_dtype).view(dtype).reshape(shape)


def fill_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost as a torch fill visits them."""
    return tuple(sorted(range(len(shape)), key=lambda dim: 0 if shape[dim] == 1 else -strides[dim]))


def fill_in_memory_order(out: Array, draw: Callable[[tuple[int, ...]], Array]) -> None:
    """Overwrite a strided array with `draw(shape)` in the order in which torch fills one."""
    in_order = out.transpose(fill_order(out.shape, out.strides))
    in_order[...] = draw(in_order.shape)
