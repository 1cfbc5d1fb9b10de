"""Exponential, logarithm and their kin, in float32 and float64, as expressions: no calls, no branches, no tables.

Each function maps expressions of one float type to another of that type. A loop over it vectorises, because it consists of
arithmetic and selections alone. Results are within 2 units in the last place of the exact ones, also where they are denormal, and are
right for infinities, NaN and zeros of both signs. `tools/check_math.py` measures that over every float32 there is.

The polynomials are fitted by `tools/fit_math.py`. Note [Adding a large number] and Note [Corrected quotients] explain what
the functions have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .coefficients import COEFFICIENTS
from .expression import (
    F32,
    F64,
    I32,
    I64,
    Expr,
    absolute,
    bitcast,
    cast,
    const,
    copysign,
    equal,
    fma,
    select,
)

INF: Final = float("inf")
NAN: Final = float("nan")


@dataclass(frozen=True)
class Format:
    """What the functions need to know about a float type."""

    type: str
    bits: str  # the integers of the same width
    mantissa: int  # how far the exponent is shifted
    bias: int  # of the exponent
    least_normal: float
    log2_e: float
    log_2: tuple[float, float]  # the number, and what its rounding left
    two_thirds: int  # as an integer
    exp_ends: tuple[float, float]  # beyond them exp is 0 and infinite
    tanh_end: float  # from here on tanh is 1
    erf_end: float  # likewise

    def scale(self, exponent: Expr) -> Expr:
        """Return the power of two whose biased exponent is in the low bits of an integer."""
        return bitcast(exponent << self.mantissa, self.type)


FORMATS: Final = {
    F32: Format(
        type=F32,
        bits=I32,
        mantissa=23,
        bias=127,
        least_normal=2.0**-126,
        log2_e=1.4426950216293335,
        log_2=(0.6931471824645996, -1.9046542121259336e-09),
        two_thirds=0x3F2AAAAB,
        exp_ends=(-104.0, 89.0),
        tanh_end=9.1,
        erf_end=3.95,
    ),
    F64: Format(
        type=F64,
        bits=I64,
        mantissa=52,
        bias=1023,
        least_normal=2.0**-1022,
        log2_e=1.4426950408889634,
        log_2=(0.6931471805599453, 2.3190468138462996e-17),
        two_thirds=0x3FE5555555555555,
        exp_ends=(-746.0, 710.0),
        tanh_end=19.1,
        erf_end=6.0,
    ),
}


def polynomial(name: str, x: Expr) -> Expr:
    """Evaluate a fitted polynomial by Horner's rule."""
    *lower, highest = COEFFICIENTS[name][x.type]
    result = const(highest, x.type)
    for coefficient in reversed(lower):
        result = fma(result, x, coefficient)
    return result


def at_most(x: Expr, high: float) -> Expr:
    """Return the smaller of the two, and NaN of NaN; one instruction, which `minimum` is not."""
    return select(x > high, high, x)


def at_least(x: Expr, low: float) -> Expr:
    """Return the greater of the two, and NaN of NaN."""
    return select(x < low, low, x)


# ---- exponentials ----
# Note [Adding a large number]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# A float32 between 2**23 and 2**24 has no bits behind the point, so adding 1.5 * 2**23 to a small number rounds it to an integer n,
# which then stands in the low bits of the sum. That gives n as a float (subtract the large number again) and as an integer (read the
# bits) without any conversion, of which the one from NaN is undefined. If the large number is greater by the bias of the exponent,
# or by twice the bias, these bits are the exponent of 2**n, or the sum of the exponents of two factors, and a shift to the left
# drops all others.


def _parted(x: Expr, bias: int) -> tuple[Expr, Expr, Expr]:
    """Write x as n * log(2) + r: r, n, and an integer with n + bias in its low bits."""
    form = FORMATS[x.type]
    large = 1.5 * 2.0**form.mantissa + bias
    shifted = fma(x, form.log2_e, large)
    n = shifted - large
    high, low = form.log_2
    return fma(n, -low, fma(n, -high, x)), n, bitcast(shifted, form.bits)


def _times_power(x: Expr, exponent: Expr) -> Expr:
    """Multiply by two powers of two whose biased exponents add up to what the low bits say: together they reach denormals and infinity."""
    form = FORMATS[x.type]
    half = exponent >> 1
    return x * form.scale(half) * form.scale(exponent - half)


def _exp_near_0(r: Expr) -> Expr:
    return fma(fma(polynomial("exp", r), r, 1.0), r, 1.0)


def _expm1_scaled(r: Expr, scale: Expr, one: float) -> Expr:
    """scale * exp(r) - one: scale * r - one is exact where it cancels, so the polynomial comes last."""
    return fma(scale, r * r * polynomial("expm1", r), fma(scale, r, scale - one))


def exp(x: Expr) -> Expr:
    """e to the power of x."""
    form = FORMATS[x.type]
    low, high = form.exp_ends
    r, _, exponent = _parted(at_least(at_most(x, high), low), 2 * form.bias)
    return _times_power(_exp_near_0(r), exponent)


def expm1(x: Expr) -> Expr:
    """exp(x) - 1, also near 0."""
    form = FORMATS[x.type]
    r, n, exponent = _parted(at_least(at_most(x, form.exp_ends[1]), -40.0), form.bias - 1)
    half = _expm1_scaled(r, form.scale(exponent), 0.5)  # of 2**n half, which is finite where 2**n is not
    near = fma(r * r, polynomial("expm1", r), r)
    return select(equal(n, 0.0), select(equal(x, 0.0), x, near), half + half)


# Note [Corrected quotients]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# a / (b + c) has three roundings: of the sum, of the quotient, and those that a brought along. What the sum lost is known exactly,
# and what the quotient lost is known from a fused multiply-add; one step of Newton's method takes both back.


def _quotient(a: Expr, b: Expr, c: Expr) -> Expr:
    """a / (b + c) for b not smaller than c, as if only the result had been rounded."""
    total = b + c
    lost = c - (total - b)
    inverse = 1.0 / total
    rough = a * inverse
    return fma(fma(-rough, lost, fma(-rough, total, a)), inverse, rough)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), with a small result where exp(-x) is infinite."""
    form = FORMATS[x.type]
    r, _, exponent = _parted(at_least(-absolute(x), form.exp_ends[0]), 2 * form.bias)
    small = _times_power(_exp_near_0(r), exponent)
    return _quotient(select(x < 0.0, small, 1.0), const(1.0, x.type), small)


def tanh(x: Expr) -> Expr:
    """Return the hyperbolic tangent: t / (t + 2) for t = expm1(2 * |x|), with the sign of x."""
    form = FORMATS[x.type]
    size = at_most(absolute(x), form.tanh_end)
    r, _, exponent = _parted(size + size, form.bias)
    t = _expm1_scaled(r, form.scale(exponent), 1.0)
    return copysign(_quotient(t, const(2.0, x.type), t), x)


# ---- logarithms ----
def _log_near_1(f: Expr, n: Expr) -> Expr:
    """log(1 + f) + n * log(2) for f between -1/3 and 1/3."""
    high, low = FORMATS[f.type].log_2
    if f.type == F32:
        near = fma(f * f, fma(polynomial("log", f), f, -0.5), f)
    else:  # the series of log((1 + s) / (1 - s)) takes a division, and half as many terms
        half = 0.5 * f * f
        s = f / (f + 2.0)
        z = s * s
        near = f - (half - fma(s, fma(polynomial("log_ratio", z), z, half), n * low))
    return fma(n, high, near)


def log(x: Expr) -> Expr:
    """Return the natural logarithm."""
    form = FORMATS[x.type]
    denormal = x < form.least_normal
    bits = bitcast(select(denormal, x * 2.0**form.mantissa, x), form.bits)
    exponent = (bits - form.two_thirds) >> form.mantissa
    f = bitcast(bits - (exponent << form.mantissa), x.type) - 1.0
    n = cast(exponent, x.type) - select(denormal, const(form.mantissa, x.type), 0.0)
    result = select(x < INF, _log_near_1(f, n), x)
    return select(x > 0.0, result, _log_not_positive(x))


def _log_not_positive(x: Expr) -> Expr:
    """Return the logarithm of zeros, negative numbers and NaN."""
    return select(equal(x, 0.0), const(-INF, x.type), NAN)


def log1p(x: Expr) -> Expr:
    """log(1 + x), also near 0: x itself is scaled, so that the rounding of 1 + x only decides by which power of two."""
    form = FORMATS[x.type]
    above = x + 1.0
    exponent = (bitcast(above, form.bits) - form.two_thirds) >> form.mantissa
    shift = exponent << form.mantissa
    scaled = bitcast(bitcast(x, form.bits) - shift, x.type)
    scale = bitcast(((form.bias + 2) << form.mantissa) - shift, x.type)  # four times as large, as 2**-128 is denormal
    unscaled = equal(exponent, 0)
    result = _log_near_1(select(unscaled, x, scaled + fma(scale, 0.25, -1.0)), cast(exponent, x.type))
    result = select(equal(x, 0.0), x, select(x < INF, result, x))
    return select(x > -1.0, result, _log_not_positive(above))


# ---- the error function ----
def erf(x: Expr) -> Expr:
    """Return the error function: an odd polynomial up to 1, and beyond 1 less the exponential of a polynomial."""
    form = FORMATS[x.type]
    near = fma(polynomial("erf", x * x), x, x)
    size = at_most(absolute(x), form.erf_end)
    r, _, exponent = _parted(-polynomial("erf_tail", size), form.bias)
    far = 1.0 - _exp_near_0(r) * form.scale(exponent)
    return select(size < 1.0, near, copysign(far, x))


# what formulas may call, by its name in `xp`
FUNCTIONS: Final[dict[str, Callable[..., Expr]]] = {
    function.__name__: function for function in (erf, exp, expm1, log, log1p, sigmoid, tanh)
}
