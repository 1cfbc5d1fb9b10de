"""Special functions: the error function and its relatives, the gamma function's logarithm and its derivative, Bessel functions.

Most are computed in float64 for both formats, with shorter polynomials for float32: then float32 results are rounded once, also near
zeros of the function and where exp(-x * x) would carry the error of a rounded square.
"""

from __future__ import annotations

import math
from typing import Final

from .exponentials import exp, exp_near_0, log, log1p, parted, quotient, times_power, whole_and_rest
from .expression import F64, Expr, absolute, cast, const, copysign, equal, fma, rint, select, sqrt
from .formats import FORMATS, INF, NAN, at_least, at_most, polynomial
from .trigonometry import HALF_PI, Angle, cosine_near_0, sine_near_0

ERF_HALF: Final = 0.4769  # where erf is 1/2
GELU_END: Final = 13.0034  # beyond -x the normal distribution function is 2**-127, which is taken for 0
ROOT_HALF: Final = (0.7071067811865476, -4.833646656726457e-17)  # with what its rounding left


# ---- the error function ----
def _erf_near_0(x: Expr) -> Expr:
    return fma(polynomial("erf", x * x), x, x)


def erf(x: Expr) -> Expr:
    """Return the error function: an odd polynomial up to 1, and beyond 1 less the exponential of a polynomial."""
    form = FORMATS[x.type]
    near = _erf_near_0(x)
    size = at_most(absolute(x), form.erf_end)
    r, _, exponent = parted(-polynomial("erf_tail", size), form.bias)
    far = 1.0 - exp_near_0(r) * form.scale(exponent)
    return select(size < 1.0, near, copysign(far, x))


def _tail_factor(size: Expr, precision: str) -> Expr:
    """Return exp(x * x) * erfc(x) * (1 + 2 * x) - 1 for positive x."""
    return polynomial("erfc", (size - 4.0) / (size + 4.0), precision)


def _one_and_twice(size: Expr) -> tuple[Expr, Expr]:
    """1 and 2 * x, the larger first."""
    twice = size + size
    large = twice > 1.0
    return select(large, twice, 1.0), select(large, const(1.0, size.type), twice)


def _power_of_square(size: Expr, low: Expr | None, sign: float) -> tuple[Expr, Expr]:
    """Return p and an exponent, so that exp(sign * (size + low)**2) is 1 + p with twice that biased exponent."""
    square = size * size
    square_low = fma(size, size, -square)
    if low is not None:
        square_low = fma(size + size, low, square_low)
    r, _, exponent = parted(sign * square, 2 * FORMATS[F64].bias)
    r = fma(square_low, sign, r)
    return fma(r * r, polynomial("exp", r), r), exponent


def _erfc(x: Expr, low: Expr | None, precision: str) -> Expr:
    """erfc(x + low) in float64."""
    size = at_most(absolute(x), 28.0)
    power, exponent = _power_of_square(size, None if low is None else select(x < 0.0, -low, low), -1.0)
    factor = _tail_factor(size, precision)
    product = fma(power, factor, factor) + power + 1.0  # (1 + power) * (1 + factor)
    small = times_power(quotient(product, *_one_and_twice(size)), exponent)
    if precision == F64:  # 1 - erf(x) loses nothing while erf is below 1/2, and the polynomial begins there
        small = select(size < ERF_HALF, 1.0 - _erf_near_0(size), small)
    return select(x < 0.0, 2.0 - small, small)


def _erfcx_of_positive(size: Expr, precision: str) -> Expr:
    factor = _tail_factor(size, precision) + 1.0
    result = quotient(factor, *_one_and_twice(size))
    if precision == F64:
        near = exp(size * size) * (1.0 - _erf_near_0(size))
        result = select(size < ERF_HALF, near, result)
    return select(size > 1e10, (1 / math.sqrt(math.pi)) / size, result)


def erfc(x: Expr) -> Expr:
    """Return 1 less the error function, which is small for large x."""
    return cast(_erfc(cast(x, F64), None, x.type), x.type)


def erfcx(x: Expr) -> Expr:
    """exp(x * x) * erfc(x), which for large x is 1 / (x * sqrt(pi))."""
    wide = cast(x, F64)
    size = absolute(wide)
    result = _erfcx_of_positive(size, x.type)
    power, exponent = _power_of_square(at_most(size, 28.0), None, 1.0)
    mirrored = 2.0 * times_power(power + 1.0, exponent) - result
    return cast(select(wide < 0.0, mirrored, result), x.type)


def ndtr(x: Expr) -> Expr:
    """Return the normal distribution function: erfc(-x / sqrt(2)) / 2."""
    wide = at_least(at_most(cast(x, F64), 60.0), -60.0)
    scaled = wide * -ROOT_HALF[0]
    low = None if x.type != F64 else fma(wide, -ROOT_HALF[1], fma(wide, -ROOT_HALF[0], -scaled))
    return cast(0.5 * _erfc(scaled, low, x.type), x.type)


def gelu(x: Expr) -> Expr:
    """Return x times the normal distribution function: float32 as the greater of x and 0, less |x| times what lies beyond |x|.

    What lies beyond is a power of two, whose exponent is a polynomial: neither a quotient nor the difference of 1 and erf.
    """
    if x.type == F64:
        return (erf(x * ROOT_HALF[0]) + 1.0) * (x * 0.5)
    form = FORMATS[x.type]
    size = absolute(at_most(x, GELU_END))  # -inf stays infinite, and becomes NaN, as in torch
    near = at_most(size, GELU_END)
    power = fma(polynomial("normal_tail", near), near, 1.0)
    r, exponent = whole_and_rest(-power, form.bias)
    beyond = fma(polynomial("exp2_short", r), r, 1.0) * form.scale(exponent)
    return fma(-size, beyond, select(x < 0.0, -0.0, x))


def log_ndtr(x: Expr) -> Expr:
    """Return the logarithm of the normal distribution function."""
    wide = cast(x, F64)
    scaled = wide * ROOT_HALF[0]
    left = log(0.5 * _erfcx_of_positive(absolute(scaled), x.type)) - scaled * scaled
    right = log1p(-0.5 * _erfc(scaled, None, x.type))
    return cast(select(wide < -1.0, left, right), x.type)


def erfinv(x: Expr) -> Expr:
    """Return the inverse of the error function: a polynomial, for float64 followed by a step of Halley's method."""
    wide = cast(x, F64)
    size = absolute(wide)
    w = -log((1.0 - size) * (1.0 + size))
    far = polynomial("erfinv_far", sqrt(w) - 4.0, "f32")
    result = size * select(w < 5.0, polynomial("erfinv", w, "f32"), far)
    if x.type == F64:
        too_much = select(size < 0.5, _erf_near_0(result) - size, (1.0 - size) - _erfc(result, None, F64))
        step = too_much * (math.sqrt(math.pi) / 2) * exp(result * result)
        result = result - step / fma(step, result, 1.0)
    return select(equal(x, 0.0), x, copysign(cast(select(equal(size, 1.0), INF, result), x.type), x))


# ---- the gamma function ----
STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
BERNOULLI: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _series(coefficients: tuple[float, ...], z: Expr) -> Expr:
    result = const(coefficients[-1], z.type)
    for coefficient in coefficients[-2::-1]:
        result = fma(result, z, coefficient)
    return result


def _half_turn(x: Expr) -> tuple[Expr, Expr]:
    """sin(pi * x) and cos(pi * x), but for signs that depend on whether the nearest integer is odd."""
    whole = rint(x)
    part = select(equal(whole, 0.0), x, x - whole)  # zero keeps its sign
    size = absolute(part)
    far = size > 0.25
    angle = Angle(select(far, 0.5 - size, size) * (2 * HALF_PI[0]), None, x)
    sine, cosine = (high + low for high, low in (sine_near_0(angle, F64), cosine_near_0(angle, F64)))
    return copysign(select(far, cosine, sine), part), select(far, sine, cosine)


def lgamma(x: Expr) -> Expr:
    """Return the logarithm of the gamma function's size, to float32's precision: a polynomial up to 3, then Stirling's series."""
    wide = cast(x, F64)
    mirrored = wide < 0.5
    z = select(mirrored, 1.0 - wide, wide)
    near = (z - 1.0) * (z - 2.0) * polynomial("lgamma", z - 1.75, "f32")
    lifted = z < 8.0
    rising = z
    for k in range(1, 6):
        rising = rising * (z + float(k))
    y = select(lifted, z + 6.0, z)
    inverse = 1.0 / y
    far = fma(y - 0.5, log(y), 0.5 * math.log(2 * math.pi) - y) + inverse * _series(STIRLING, inverse * inverse)
    small = z < 3.0
    value = select(small, near, far)
    factor = select(small | ~lifted, 1.0, rising)
    sine, _ = _half_turn(wide)
    logarithm = log(select(mirrored, math.pi * factor / absolute(sine), factor))
    result = select(mirrored, logarithm - value, value - logarithm) + 0.0  # at 1 and 2 zero is positive
    return cast(select(absolute(wide) < INF, result, wide * wide), x.type)


def digamma(x: Expr) -> Expr:
    """Return the derivative of the logarithm of the gamma function, to float32's precision."""
    wide = cast(x, F64)
    mirrored = wide < 0.5
    z = select(mirrored, 1.0 - wide, wide)
    rising, slope = z, const(1.0, F64)
    for k in range(1, 10):
        slope, rising = fma(slope, z + float(k), rising), rising * (z + float(k))
    lifted = z < 10.0
    y = select(lifted, z + 10.0, z)
    inverse = 1.0 / y
    square = inverse * inverse
    value = log(y) - fma(square, _series(BERNOULLI, square), 0.5 * inverse) - select(lifted, slope / rising, 0.0)
    sine, cosine = _half_turn(wide)
    result = select(mirrored, value - math.pi * cosine / sine, value)
    pole = equal(sine, 0.0) & (wide < 0.0)
    return cast(select(pole, NAN, result), x.type)


# ---- modified Bessel functions ----
def _bessel(x: Expr, order: int, scaled: bool) -> Expr:
    """Return I0 or I1, or that times exp(-|x|): a polynomial of x * x up to 8, and one of 1 / x beyond."""
    form = FORMATS[F64]
    size = absolute(cast(x, F64))
    if not scaled:
        infinite, size = equal(size, INF), at_most(size, form.exp_ends[1] + 10.0)
    near = polynomial(f"i{order}", 0.25 * size * size, x.type)
    if order == 1:
        near = 0.5 * size * near
    far = polynomial(f"i{order}_far", 1.0 / size, x.type) / sqrt(size)
    if scaled:
        near = near * exp(-size)
    else:
        r, _, exponent = parted(size, 2 * form.bias)
        far = select(infinite, NAN, times_power(exp_near_0(r) * far, exponent))  # as torch has it
    result = cast(select(size <= 8.0, near, far), x.type)
    return select(x < 0.0, -result, result) if order == 1 else result


def i0(x: Expr) -> Expr:
    """Return the modified Bessel function of order 0."""
    return _bessel(x, 0, scaled=False)


def i0e(x: Expr) -> Expr:
    """i0(x) * exp(-|x|)."""
    return _bessel(x, 0, scaled=True)


def i1(x: Expr) -> Expr:
    """Return the modified Bessel function of order 1."""
    return _bessel(x, 1, scaled=False)


def i1e(x: Expr) -> Expr:
    """i1(x) * exp(-|x|)."""
    return _bessel(x, 1, scaled=True)
