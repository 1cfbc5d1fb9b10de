"""float32 functions that neither NumPy nor scipy compute quickly, in blocks that stay in the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _thresholds
from . import parallel
from .passes import LARGE, integer_power

BLOCK = _thresholds.KERNEL_BLOCK
F32, F16 = np.dtype(np.float32), np.dtype(np.float16)


# erf(x) = x P(x^2) / Q(x^2) up to 3.9, where it is 1 in float32: fitted by least squares, weighted until the relative error
# (2e-8 before rounding) was even. Highest power first.
_ERF_P = (2.06646817e-06, 0.000285063366, 0.00373838936, 0.0526682162, 0.189667808, 1.12837915)
_ERF_Q = (3.82700292e-05, 0.00115738704, 0.0149143633, 0.113819368, 0.5014215, 1.0)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def in_blocks(
    function: Callable[..., None], *arrays: np.ndarray, block: int = BLOCK, dtype: Any = np.float32
) -> np.ndarray:
    """Call `function(*blocks, out)` for the blocks of arrays of one shape."""
    out = np.empty(arrays[0].shape, dtype)
    blockwise(function, [*[np.ascontiguousarray(a).reshape(-1) for a in arrays], out.reshape(-1)], block)
    return out


def blockwise(function: Callable[..., None], rows: list[np.ndarray], block: int = BLOCK) -> None:
    """Call `function(*blocks)` for the blocks of rows of one length, on several threads where there are many."""
    size = rows[0].size
    many = size >= parallel.WIDE
    parallel.over_blocks(
        lambda start, end: function(*[row[start:end] for row in rows]),
        size,
        max(block, parallel.BLOCK) if many else block,
        many,
    )


def _polynomial(coefficients: Sequence[Any], z: np.ndarray) -> np.ndarray:
    value: np.ndarray = z * coefficients[0]
    for coefficient in coefficients[1:-1]:
        value += coefficient
        value *= z
    value += coefficients[-1]
    return value


def _erf_block(x: np.ndarray, out: np.ndarray) -> None:
    np.clip(x, -3.98, 3.98, out=out)
    z = out * out
    out *= _polynomial(_ERF_P, z)
    out /= _polynomial(_ERF_Q, z)
    np.clip(out, -1, 1, out=out)  # the quotient at 3.98 rounds to a little more


def erf(x: np.ndarray) -> np.ndarray:
    """Compute erf of a float32 array to 6 units in the last place; scipy's takes six times as long."""
    return in_blocks(_erf_block, x)


def _zeta_block(x: np.ndarray, out: np.ndarray, s: int) -> None:
    # Ten terms of the sum, then its Euler-Maclaurin formula
    out.fill(0)
    for k in range(10):
        term = x + k
        np.divide(1, term, out=term)
        out += integer_power(term, s)
    y = x + 10
    np.divide(1, y, out=y)
    square = y * y
    rising = [math.prod(range(s, s + 2 * k - 1)) / math.factorial(2 * k) for k in range(1, 6)]
    series = _polynomial(tuple(b * r for b, r in zip(_BERNOULLI, rising, strict=True))[::-1], square)
    series *= y
    series += 0.5
    series *= y
    series += 1 / (s - 1)
    series *= integer_power(y, s - 1)
    out += series


def hurwitz_zeta(x: Any, s: int) -> np.ndarray | None:
    """Compute the sum of (x + k)^-s over k for a float32 array of positive numbers; None where it cannot."""
    if not is_large(x) or not 2 <= s <= 4 or not x.min() > 0:  # or NaN
        return None
    return in_blocks(lambda a, out: _zeta_block(a, out, s), x)


def _hypot_block(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    np.multiply(x, x, out=out)
    out += y * y
    if out.min() > 1e-30 and out.max() < 1e38:
        np.sqrt(out, out=out)
    else:  # a square left the range of float32, or is zero, infinite or NaN
        np.hypot(x, y, out=out)


def hypot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the length of (x, y) of float32 arrays of one shape."""
    return in_blocks(_hypot_block, x, y)


def _sigmoid_block(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(1, out, out=out)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(-x)) of a float32 array."""
    return in_blocks(_sigmoid_block, x, block=4 * BLOCK)  # little work on a block of a single array


def _lerp_block(x: np.ndarray, y: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    # x + w (y - x) where |w| is below a half, else y + (w - 1) (y - x): both ends are reached exactly
    far = ~np.less(np.abs(weight, out=out), 0.5)  # so is NaN
    step = y - x
    step *= np.subtract(weight, far.astype(F32), out=out)
    base, bits = out.view(np.int32), x.view(np.int32)
    np.bitwise_xor(bits, y.view(np.int32), out=base)
    base *= far.astype(np.int32)
    base ^= bits
    out += step


def lerp(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Interpolate between float32 arrays of one shape, from the nearer end."""
    return in_blocks(_lerp_block, x, y, weight)


def _copysign_block(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    bits = np.bitwise_and(x.view(np.int32), 0x7FFFFFFF, out=out.view(np.int32))
    bits |= y.view(np.int32) & -0x80000000


def copysign(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Give float32 numbers the signs of others, by their bits."""
    return in_blocks(_copysign_block, x, y)


def _to_half_block(x: np.ndarray, out: np.ndarray) -> None:
    # Round to ten bits of fraction, ties to even, and give the exponent its smaller bias, all in integers.
    bits = x.view(np.int32)
    rounded = bits >> 13
    rounded &= 1
    rounded += bits
    rounded += 0xFFF - (112 << 23)
    sign = rounded >> 16
    sign &= -0x8000
    rounded >>= 13
    rounded &= 0x7FFF
    rounded |= sign
    out.view(np.int16)[...] = rounded
    size = bits & 0x7FFFFFFF
    size -= 113 << 23
    other = size.view(np.uint32) >= 0x477FF000 - (113 << 23)  # zero, below 2^-14, beyond 65520, or no number
    if other.any():
        at = np.flatnonzero(other)
        out[at] = x[at].astype(F16)


def to_half(x: np.ndarray) -> np.ndarray:
    """Convert float32 to float16 to the bit as NumPy does, in half the time."""
    return in_blocks(_to_half_block, x, dtype=F16)


def _from_half_block(x: np.ndarray, out: np.ndarray) -> None:
    halves = x.view(np.int16)
    sign = halves.astype(np.int32)
    bits = np.bitwise_and(sign, 0x7FFF, out=out.view(np.int32))
    largest = bits.max()
    bits <<= 13
    out *= np.float32(2.0**112)  # the greater bias; right for numbers below 2^-14, too
    sign &= -0x80000000
    bits |= sign
    if largest >= 0x7C00:  # infinity or NaN
        at = np.flatnonzero((halves & 0x7C00) == 0x7C00)
        out[at] = x[at].astype(F32)


def from_half(x: np.ndarray) -> np.ndarray:
    """Convert float16 to float32 to the bit as NumPy does, in less than half the time."""
    return in_blocks(_from_half_block, x)


def cast(x: Any, dtype: Any) -> Any:
    """Convert an array to another dtype."""
    if type(x) is np.ndarray and x.size >= LARGE and x.flags.c_contiguous:
        if x.dtype is F32 and dtype == F16:
            return to_half(x)
        if x.dtype is F16 and dtype == F32:
            return from_half(x)
    return x.astype(dtype)


def is_large(x: Any) -> bool:
    """Tell whether an array is one that these functions are for."""
    return type(x) is np.ndarray and x.size >= LARGE and x.dtype is F32


def _quotient_block(x: np.ndarray, divisor: Any, out: np.ndarray, rounded: Any, rest: bool) -> None:
    # In float64 the product of a float32 and a whole number below 2^29 is exact, and so is the difference.
    wide = x.astype(np.float64)
    quotient = wide / divisor
    rounded(quotient, out=quotient)
    if rest:
        quotient *= divisor
        quotient = np.subtract(wide, quotient, out=wide)
    out[...] = quotient


def divided(x: Any, y: Any, rounded: Any, rest: bool) -> np.ndarray | None:
    """Compute q = rounded(x / y) of float32, or the rest x - y q, quicker than NumPy; None where it cannot, or not exactly."""
    if not is_large(x):
        return None
    number = type(y) in (int, float, np.float32)
    if not number and (not is_large(y) or y.shape != x.shape):
        return None
    smallest = abs(float(np.float32(y))) if number else np.abs(y).min()
    if not smallest or not max(x.max(), -x.min()) / smallest < 1 << 27:  # or NaN
        return None
    if number:
        divisor = float(np.float32(y))
        return in_blocks(lambda a, out: _quotient_block(a, divisor, out, rounded, rest), x)
    return in_blocks(lambda a, b, out: _quotient_block(a, b.astype(np.float64), out, rounded, rest), x, y)
