"""Special functions: the error function and its relatives, the gamma function's logarithm and its derivative, Bessel functions.

Most are computed in float64 for both formats, with shorter polynomials for float32: then float32 results are rounded once, also near
zeros of the function and where exp(-x * x) would carry the error of a rounded square.
"""

from __future__ import annotations

import math
from typing import Final

from .coefficients import COEFFICIENTS
from .exponentials import exp, exp_near_0, log, log1p, parted, quotient, times_power, whole_and_rest
from .expression import F32, F64, Expr, absolute, bitcast, cast, const, copysign, equal, fma, rint, select, sqrt
from .formats import FORMATS, INF, NAN, at_least, at_most, fast_sum, polynomial, quick_polynomial
from .trigonometry import HALF_PI, Angle, cosine_near_0, sine_near_0

ERF_HALF: Final = 0.4769  # where erf is 1/2
NORMAL_END: Final = 14.7  # beyond -x gelu and its derivative are 0 in float32
HALF_END: Final = 14.0  # and in bfloat16
NORMAL_NEAR: Final = 0.75  # up to here gelu is a polynomial
SHRUNK: Final = (
    32  # what is multiplied by exp(-x * x / 2) is smaller by this power of two: so one more factor reaches denormals
)
SLOPE_ZERO: Final = (0.7517915368080139, -1.211444945855772e-08)  # -x where gelu is least, with what its rounding left
SLOPE_MIDDLE: Final = 2.1380293369293213  # where it is 1/2 but for the exponential and that factor
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
    small = _erfc_of_positive(absolute(x), None if low is None else select(x < 0.0, -low, low), precision)
    return select(x < 0.0, 2.0 - small, small)


def _erfc_of_positive(size: Expr, low: Expr | None, precision: str, times: Expr | float = 1.0) -> Expr:
    """erfc(size + low) times a number in float64, of which denormals are rounded once."""
    size = at_most(size, 28.0)
    power, exponent = _power_of_square(size, low, -1.0)
    factor = _tail_factor(size, precision)
    product = fma(power, factor, factor) + power + 1.0  # (1 + power) * (1 + factor)
    small = times_power(quotient(product, *_one_and_twice(size)) * times, exponent)
    if precision == F64:  # 1 - erf(x) loses nothing while erf is below 1/2, and the polynomial begins there
        small = select(size < ERF_HALF, (1.0 - _erf_near_0(size)) * times, small)
    return small


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
    scaled, low = _by_root_2(-cast(x, F64))
    return cast(0.5 * _erfc(scaled, low if x.type == F64 else None, x.type), x.type)


def _by_root_2(x: Expr) -> tuple[Expr, Expr]:
    """x / sqrt(2) in float64 and what its rounding left, for x up to where the normal density is 0."""
    x = at_least(at_most(x, 39.5), -39.5)
    scaled = x * ROOT_HALF[0]
    return scaled, fma(x, ROOT_HALF[1], fma(x, ROOT_HALF[0], -scaled))


def _exp_of_half_square(size: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Return x / 2, x * x / 2, and g and a power of two: exp(-x * x / 2) is (1 + g) times that, but for what the fits know.

    n * log(2) is subtracted with the float32 next to log(2) alone. What that leaves, n * 1.9e-9, is a function of x like any other
    beside what is rounded, so the polynomials that come after make up for it.
    """
    form = FORMATS[F32]
    half = size * 0.5
    square = size * half
    square_low = fma(size, half, -square)
    large = 1.5 * 2.0**form.mantissa + form.bias + SHRUNK
    shifted = fma(square, -form.log2_e[0], large)
    r = fma(shifted - large, form.log_2[0], square) + square_low
    return half, square, fma(r * r, polynomial("exp", -r), -r), form.scale(bitcast(shifted, form.bits))


def exact_gelu(x: Expr) -> Expr:
    """Return x times the normal distribution function: float32 as the greater of x and 0, less |x| times what lies beyond |x|.

    That product is one polynomial near 0, and exp(-x * x / 2) times another beyond.
    """
    above = select(x < 0.0, x * 0.0, x)  # at -inf NaN, as in torch
    if x.type == F64:
        scaled, low = _by_root_2(absolute(x))
        return above - _erfc_of_positive(scaled, low, F64, at_most(absolute(x), 40.0) * 0.5)
    size = at_most(absolute(x), NORMAL_END)
    near = size < NORMAL_NEAR
    half, square, g, scale = _exp_of_half_square(size)
    ratio = (size - 1.78125) / (size + 1.78125)
    # one loop for both, in which coefficients are chosen; near 0 the higher ones of the other are too small to count
    at = select(near, square, ratio)
    few = COEFFICIENTS["gelu_near"][F32]
    *lower, factor = (const(c * 2.0**-SHRUNK, F32) for c in COEFFICIENTS["gelu_far"][F32])
    for power, coefficient in reversed([*enumerate(lower)]):
        chosen = select(near, const(few[power], F32), coefficient) if power < len(few) else coefficient
        factor = fma(factor, at, chosen)
    return above - select(near, fma(-square, factor, half), fma(g, factor, factor) * scale)


def exact_gelu_slope(x: Expr) -> Expr:
    """Return the derivative of gelu, whose zero is a factor of it."""
    nothing = absolute(x) * 0.0  # and NaN at both infinities, as in torch
    if x.type == F64:
        size = at_most(absolute(x), 39.5)
        scaled, low = _by_root_2(size)
        power, exponent = _power_of_square(scaled, low, -1.0)
        factor = fma(size, -1 / math.sqrt(2 * math.pi), 0.5 * _erfcx_of_positive(scaled, F64))
        left = times_power(fma(power, factor, factor), exponent)
        return select(x < 0.0, left, 1.0 - left) + nothing
    size = at_most(absolute(x), NORMAL_END)
    _, _, g, scale = _exp_of_half_square(size)
    t = (size - SLOPE_MIDDLE) / (size + SLOPE_MIDDLE)
    rest = t * polynomial("gelu_slope", t)
    zero, zero_low = SLOPE_ZERO
    below = zero - size
    taken = zero - below  # size, but for what rounding left; either may be the larger
    below_low = (zero - (below + taken)) + (taken - size) + zero_low
    factor, low = fast_sum(below * 0.5, fma(below, rest, below_low * (rest + 0.5)))
    left = (factor + fma(g, factor, low)) * 2.0**-SHRUNK * scale
    return select(x < 0.0, left, 1.0 - left) + nothing


def _power_of_half(x: Expr) -> Expr:
    """2**(x + SHRUNK) to the precision that half precision takes."""
    form = FORMATS[F32]
    r, exponent = whole_and_rest(x, form.bias + SHRUNK)
    return quick_polynomial("exp2_half", r) * form.scale(exponent)


def half_gelu(x: Expr) -> Expr:
    """Return `exact_gelu` to the precision that half precision takes."""
    size = at_most(absolute(x), HALF_END)
    beyond = _power_of_half(quick_polynomial("gelu_half", size)) * -(2.0**-SHRUNK)
    return fma(size, beyond, select(x < 0.0, x * 0.0, x))


def half_gelu_slope(x: Expr) -> Expr:
    """Return `exact_gelu_slope` to the precision that half precision takes."""
    size = at_most(absolute(x), NORMAL_END)
    density = _power_of_half(size * size * (FORMATS[F32].log2_e[0] / -2))
    factor = quick_polynomial("gelu_slope_half", (size - 2.375) / (size + 2.375))
    left = fma(size, -(2.0**-SHRUNK), SLOPE_ZERO[0] * 2.0**-SHRUNK) * factor * density
    return select(x < 0.0, left, 1.0 - left) + absolute(x) * 0.0


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
    angle = Angle(select(far, 0.5 - size, size) * (2 * HALF_PI[F64][0]), None, x)
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
