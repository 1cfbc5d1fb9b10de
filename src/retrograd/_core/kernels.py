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


def _quicker_power() -> tuple[str, float]:
    """Return the quicker of `exp` and `exp2`, and what its argument is multiplied with to make it `exp`.

    On processors with AVX-512 NumPy has `exp2` in all lanes, and it takes half as long as `exp`; elsewhere it calls the C library.
    """
    introspect = getattr(np.lib, "introspect", None)
    found = introspect.opt_func_info(func_name="^exp2$", signature="^float32$") if introspect else {}
    lanes = [of_dtype["current"] for of_dtype in found.get("exp2", {}).values()]
    return ("exp2", math.log2(math.e)) if lanes and "baseline" not in lanes[0] else ("exp", 1.0)


# For sums with 1, whose argument is small where it matters: rounding it to another base moves large powers by its last place.
POWER, POWER_SCALE = _quicker_power()

# erf(x) = x P(x^2) / Q(x^2) up to 3.9, where it is 1 in float32: fitted by least squares, weighted until the relative error
# (2e-8 before rounding) was even. Highest power first.
_ERF_P = (2.06646817e-06, 0.000285063366, 0.00373838936, 0.0526682162, 0.189667808, 1.12837915)
_ERF_Q = (3.82700292e-05, 0.00115738704, 0.0149143633, 0.113819368, 0.5014215, 1.0)
# exp(x^2) erfc(x) / t of t = 1 / (1 + 0.3 x) for x from 0 to 11: 2e-8
_ERFC = (-0.129556046, 0.4857372467, -0.512669879, 0.5482131356, -0.09502964112, 0.2151078041, 0.1482861161, 0.1707238316,
         0.1691874124)  # fmt: skip
# log(F(-x) / F(x)) / x of x^2, where F is the normal distribution function: F(x) to 3e-8 for all x, where torch's is to 2e-7
_NORMAL_ODDS = (
    -3.5123463e-09,
    2.64526838e-07,
    -7.92949062e-06,
    0.000110612397,
    6.51899321e-05,
    -0.0726661692,
    -1.59576989,
)
# 0-d arrays, which NumPy's ufuncs take quicker than numbers
_SCALED_ODDS = [np.array(c * POWER_SCALE, np.float32) for c in _NORMAL_ODDS]
_POWER_OF, _ONE = getattr(np, POWER), np.array(1, np.float32)
# erfinv(x) / x of w = -log(1 - x^2) up to 5: 6e-9
_ERFINV = (-8.791016454e-09, 2.210304935e-07, -1.976461056e-06, 3.98323671e-06, 4.456521988e-05, -0.0001274816572,
           -0.00233429617, 0.01154865389, 0.232013818, 0.8862269205)  # fmt: skip
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)
# Stirling's series in 1 / y^2, times y
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


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


def _erfc_block(x: np.ndarray, out: np.ndarray, scale: float) -> None:
    # In float64, because far out the exponent's error is the result's relative error.
    wide = x.astype(np.float64)
    if scale != 1:
        wide *= scale
    np.abs(wide, out=wide)
    t = wide * 0.3
    t += 1
    np.divide(1, t, out=t)
    wide *= wide
    np.negative(wide, out=wide)
    np.exp(wide, out=wide)
    wide *= t
    wide *= _polynomial(_ERFC, t)
    out[...] = wide
    below = np.less(x, 0) if scale > 0 else np.greater(x, 0)
    twice = np.multiply(below, np.float32(2))
    out *= 1 - twice  # erfc(-x) = 2 - erfc(x)
    out += twice


def normal_odds(x: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return 1 / F(x) for float32 numbers and their squares, where F is the normal distribution function: 1 + F(-x) / F(x)."""
    odds = _polynomial(_SCALED_ODDS, square)
    odds *= x
    _POWER_OF(odds, odds)
    odds += _ONE
    return odds


def erfc(x: np.ndarray) -> np.ndarray:
    """Compute erfc of a float32 array, to 3 units in the last place of even the smallest results."""
    return in_blocks(lambda a, out: _erfc_block(a, out, 1.0), x)


def ndtr(x: np.ndarray) -> np.ndarray:
    """Compute the normal distribution function of a float32 array: half of erfc(-x / sqrt(2))."""
    out = in_blocks(lambda a, out: _erfc_block(a, out, -math.sqrt(0.5)), x)
    out *= 0.5
    return out


def _erfcx_block(x: np.ndarray, out: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> None:
    wide = x.astype(np.float64)
    t = np.abs(wide)
    t *= 0.3
    t += 1
    np.divide(1, t, out=t)
    value = _polynomial(_ERFC, t)
    value *= t
    below = x < 0
    if below.any():  # erfcx(-x) = 2 exp(x^2) - erfcx(x)
        wide *= wide
        np.minimum(wide, 700, out=wide)  # beyond float32 long since
        np.exp(wide, out=wide)
        wide *= 2
        wide -= value
        np.copyto(value, wide, where=below)
    out[...] = value
    far = x > 10
    if far.any():
        out[far] = exactly(x[far])


def erfcx(x: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute exp(x^2) erfc(x) of a float32 array; `exactly` computes the few beyond 10."""
    return in_blocks(lambda a, out: _erfcx_block(a, out, exactly), x)


def _erfinv_block(x: np.ndarray, out: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> None:
    np.subtract(1, x, out=out)
    w = x + 1
    w *= out
    far = np.less(w, 0.0067)  # NaN is not; beyond 1 is
    np.clip(w, 0.0067, None, out=w)
    np.log(w, out=w)
    np.negative(w, out=w)
    np.multiply(_polynomial(_ERFINV, w), x, out=out)
    if far.any():
        out[far] = exactly(x[far])


def erfinv(x: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute erfinv of a float32 array; `exactly` computes the few that lie near -1 and 1."""
    return in_blocks(lambda a, out: _erfinv_block(a, out, exactly), x)


def _lgamma_block(x: np.ndarray, out: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> None:
    if not (x.min() > 0 and x.max() < 1e30):  # or NaN
        out[...] = exactly(x)
        return
    # gamma(x) = gamma(x + 8) / (x (x + 1) ... (x + 7)), of which the first and the last make a pair, and so on
    wide = x.astype(np.float64)
    pair = wide + 7
    pair *= wide
    product = pair + 6
    product *= pair
    for added in (4, 2):
        pair += added + 6 * (added == 4)
        product *= pair
    np.log(product, out=product)
    wide += 8
    np.divide(1, wide, out=pair)
    square = pair * pair
    series = _polynomial(_STIRLING, square)
    series *= pair
    series -= product
    np.log(wide, out=pair)
    series -= wide
    wide -= 0.5
    pair *= wide
    series += pair
    series += 0.5 * math.log(2 * math.pi)
    out[...] = series
    zero = np.abs(out) < 1e-10  # at 1 and 2
    if zero.any():
        out[zero] = 0


def lgamma(x: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute log(gamma) of a float32 array of positive numbers; `exactly` takes the blocks that have others."""
    return in_blocks(lambda a, out: _lgamma_block(a, out, exactly), x)


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


def _entr_block(x: np.ndarray, out: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> None:
    if x.min() > 0:
        np.log(x, out=out)
        out *= x
        np.negative(out, out=out)
    else:  # or NaN
        out[...] = exactly(x)


def entr(x: np.ndarray, exactly: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute -x log(x) of float32 numbers; `exactly` takes the blocks in which some are not positive."""
    return in_blocks(lambda a, out: _entr_block(a, out, exactly), x)


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
