"""Exponentials, logarithms, powers, hyperbolic functions and their inverses. Note [Adding a large number] and Note [Corrected
quotients] explain what they have in common.
"""

from __future__ import annotations

from typing import Final

from .expression import (
    F32,
    F64,
    Expr,
    absolute,
    bitcast,
    cast,
    const,
    copysign,
    equal,
    fma,
    not_equal,
    rint,
    select,
    sqrt,
)
from .formats import FORMATS, INF, NAN, at_least, at_most, fast_sum, polynomial

# ---- exponentials ----
# Note [Adding a large number]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# A float32 between 2**23 and 2**24 has no bits behind the point, so adding 1.5 * 2**23 to a small number rounds it to an integer n,
# which then stands in the low bits of the sum. That gives n as a float (subtract the large number again) and as an integer (read the
# bits) without any conversion, of which the one from NaN is undefined. If the large number is greater by the bias of the exponent,
# or by twice the bias, these bits are the exponent of 2**n, or the sum of the exponents of two factors, and a shift to the left
# drops all others.


def parted(x: Expr, bias: int) -> tuple[Expr, Expr, Expr]:
    """Write x as n * log(2) + r: r, n, and an integer with n + bias in its low bits."""
    form = FORMATS[x.type]
    large = 1.5 * 2.0**form.mantissa + bias
    shifted = fma(x, form.log2_e[0], large)
    n = shifted - large
    high, low = form.log_2
    return fma(n, -low, fma(n, -high, x)), n, bitcast(shifted, form.bits)


def times_power(x: Expr, exponent: Expr) -> Expr:
    """Multiply by two powers of two whose biased exponents add up to what the low bits say: together they reach denormals and infinity."""
    form = FORMATS[x.type]
    half = exponent >> 1
    return x * form.scale(half) * form.scale(exponent - half)


def exp_near_0(r: Expr) -> Expr:
    return fma(fma(polynomial("exp", r), r, 1.0), r, 1.0)


def _expm1_scaled(r: Expr, scale: Expr, one: float) -> Expr:
    """scale * exp(r) - one: scale * r - one is exact where it cancels, so the polynomial comes last."""
    return fma(scale, r * r * polynomial("expm1", r), fma(scale, r, scale - one))


def exp(x: Expr) -> Expr:
    """e to the power of x."""
    form = FORMATS[x.type]
    low, high = form.exp_ends
    r, _, exponent = parted(at_least(at_most(x, high), low), 2 * form.bias)
    return times_power(exp_near_0(r), exponent)


def expm1(x: Expr) -> Expr:
    """exp(x) - 1, also near 0."""
    form = FORMATS[x.type]
    r, n, exponent = parted(at_least(at_most(x, form.exp_ends[1]), -40.0), form.bias - 1)
    half = _expm1_scaled(r, form.scale(exponent), 0.5)  # of 2**n half, which is finite where 2**n is not
    near = fma(r * r, polynomial("expm1", r), r)
    return select(equal(n, 0.0), select(equal(x, 0.0), x, near), half + half)


def exp2(x: Expr) -> Expr:
    """2 to the power of x."""
    form = FORMATS[x.type]
    low, high = form.exp2_ends
    r, exponent = whole_and_rest(at_least(at_most(x, high), low), 2 * form.bias)
    return times_power(fma(polynomial("exp2", r), r, 1.0), exponent)


def whole_and_rest(x: Expr, bias: int) -> tuple[Expr, Expr]:
    """Write x as n + r for an integer n: r, and an integer with n + bias in its low bits."""
    form = FORMATS[x.type]
    large = 1.5 * 2.0**form.mantissa + bias
    shifted = x + large
    return x - (shifted - large), bitcast(shifted, form.bits)


def _half_exp(x: Expr) -> Expr:
    """exp(|x|) / 2, of which half is always finite."""
    form = FORMATS[x.type]
    r, _, exponent = parted(at_most(absolute(x), form.cosh_end), form.bias - 2)
    quarter = exp_near_0(r) * form.scale(exponent)
    return quarter + quarter


def cosh(x: Expr) -> Expr:
    """Return the hyperbolic cosine: e / 2 + 1 / (2 * e) for e = exp(|x|)."""
    half = _half_exp(x)
    return half + 0.25 / half


def sinh(x: Expr) -> Expr:
    """Return the hyperbolic sine: an odd polynomial up to 1, and beyond e / 2 - 1 / (2 * e) for e = exp(|x|), with the sign of x."""
    z = x * x
    near = fma(x * z, polynomial("sinh", z), x)
    half = _half_exp(x)
    return select(absolute(x) < 1.0, select(equal(x, 0.0), x, near), copysign(half - 0.25 / half, x))


# Note [Corrected quotients]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# a / (b + c) has three roundings: of the sum, of the quotient, and those that a brought along. What the sum lost is known exactly,
# and what the quotient lost is known from a fused multiply-add; one step of Newton's method takes both back.


def quotient(a: Expr, b: Expr, c: Expr) -> Expr:
    """a / (b + c) for b not smaller than c, as if only the result had been rounded."""
    total = b + c
    lost = c - (total - b)
    inverse = 1.0 / total
    rough = a * inverse
    return fma(fma(-rough, lost, fma(-rough, total, a)), inverse, rough)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), with a small result where exp(-x) is infinite."""
    form = FORMATS[x.type]
    r, _, exponent = parted(at_least(-absolute(x), form.exp_ends[0]), 2 * form.bias)
    small = times_power(exp_near_0(r), exponent)
    return quotient(select(x < 0.0, small, 1.0), const(1.0, x.type), small)


def tanh(x: Expr) -> Expr:
    """Return the hyperbolic tangent: t / (t + 2) for t = expm1(2 * |x|), with the sign of x."""
    form = FORMATS[x.type]
    size = at_most(absolute(x), form.tanh_end)
    r, _, exponent = parted(size + size, form.bias)
    t = _expm1_scaled(r, form.scale(exponent), 1.0)
    return copysign(quotient(t, const(2.0, x.type), t), x)


# ---- logarithms ----
def _log_near_1(f: Expr, low: Expr | None = None) -> Expr:
    """log(1 + f) for f between -1/3 and 1/3, and with it a small number if there is one."""
    if f.type == F32:
        factor = fma(polynomial("log", f), f, -0.5)
        return fma(f * f, factor, f) if low is None else f + fma(f * f, factor, low)
    # the series of log((1 + s) / (1 - s)) takes a division, and half as many terms
    half = 0.5 * f * f
    s = f / (f + 2.0)
    z = s * s
    tail = fma(polynomial("log_ratio", z), z, half)
    return f - (half - (s * tail if low is None else fma(s, tail, low)))


def _times_log_2(n: Expr, f: Expr, low: Expr | None = None) -> Expr:
    """log(2**n * (1 + f)), and with it a small number."""
    high, rest = FORMATS[f.type].log_2
    if f.type == F64:
        low = n * rest if low is None else fma(n, rest, low)
    return fma(n, high, _log_near_1(f, low))


def _exponent_and_rest(x: Expr) -> tuple[Expr, Expr]:
    """Write a positive number as 2**n * (1 + f) with f between -1/3 and 1/3."""
    form = FORMATS[x.type]
    denormal = x < form.least_normal
    n, f = _normal_exponent_and_rest(select(denormal, x * 2.0**form.mantissa, x))
    return n - select(denormal, const(form.mantissa, x.type), 0.0), f


def _normal_exponent_and_rest(x: Expr) -> tuple[Expr, Expr]:
    form = FORMATS[x.type]
    bits = bitcast(x, form.bits)
    exponent = (bits - form.two_thirds) >> form.mantissa
    return cast(exponent, x.type), bitcast(bits - (exponent << form.mantissa), x.type) - 1.0


def log_of_all(x: Expr, result: Expr) -> Expr:
    """Return a logarithm of x, which positive numbers have already, for all others, too."""
    return select(x > 0.0, select(x < INF, result, x), select(equal(x, 0.0), const(-INF, x.type), NAN))


def log(x: Expr) -> Expr:
    """Return the natural logarithm."""
    return log_of_all(x, _times_log_2(*_exponent_and_rest(x)))


def log2(x: Expr) -> Expr:
    """Return the logarithm to base 2, exact for powers of 2."""
    n, f = _exponent_and_rest(x)
    high, low = FORMATS[x.type].log2_e
    near = _log_near_1(f)
    return log_of_all(x, fma(near, high, fma(near, low, n)))


def log10(x: Expr) -> Expr:
    """Return the logarithm to base 10."""
    form = FORMATS[x.type]
    n, f = _exponent_and_rest(x)
    if x.type == F32:  # f, which is exact, and what the logarithm is less: their sum would have to be rounded first
        rest = f * f * fma(polynomial("log", f), f, -0.5)
        near = fma(f, form.log10_e[0], fma(rest, form.log10_e[0], f * form.log10_e[1]))
    else:
        near = _log_near_1(f)
        near = fma(near, form.log10_e[0], near * form.log10_e[1])
    return log_of_all(x, fma(n, form.log10_2[0], fma(n, form.log10_2[1], near)))


def log1p(x: Expr) -> Expr:
    """log(1 + x), also near 0."""
    return select(equal(x, 0.0), x, _log_1_plus(x))


def _log_1_plus(x: Expr, low: Expr | None = None, twice: Expr | None = None) -> Expr:
    """log(1 + x + low), where low is what the rounding of x left, or the logarithm of twice that.

    x itself is scaled, so that the rounding of 1 + x only decides by which power of two.
    """
    form = FORMATS[x.type]
    above = x + 1.0
    exponent = (bitcast(above, form.bits) - form.two_thirds) >> form.mantissa
    shift = exponent << form.mantissa
    scaled = bitcast(bitcast(x, form.bits) - shift, x.type)
    scale = bitcast(((form.bias + 2) << form.mantissa) - shift, x.type)  # four times as large, as 2**-128 is denormal
    f = select(equal(exponent, 0), x, scaled + fma(scale, 0.25, -1.0))
    n = cast(exponent, x.type)
    if twice is not None:
        n = select(twice, n + 1.0, n)
    return log_of_all(above, _times_log_2(n, f, None if low is None else low / above))


# ---- powers ----
THIRD: Final = (0.3333333333333333, 1.850371707708594e-17)  # in float64, with what its rounding left


def power(x: Expr, y: Expr) -> Expr:
    """X to the power of y: float32 in float64, float64 through a logarithm with ten bits more. Negative x have integer powers."""
    size = absolute(x)
    result = (_power_of_float32 if x.type == F32 else _power_of_float64)(size, y)
    result = select(equal(size, 1.0), 1.0, result)  # also for infinite y
    integer = equal(rint(y), y)
    odd = integer & not_equal(rint(y * 0.5), y * 0.5)
    result = select(odd, copysign(result, x), result)
    undefined = (x < 0.0) & (x > -INF) & not_equal(rint(y), y)
    result = select(undefined, NAN, result)
    return select(equal(y, 0.0), 1.0, select(equal(x, 1.0), 1.0, result))


def _power_of_float32(size: Expr, y: Expr) -> Expr:
    """2**(y * log2(size)) in float64, to what float32 needs of it."""
    wide, form = cast(size, F64), FORMATS[F64]
    n, f = _normal_exponent_and_rest(wide)
    s = f / (f + 2.0)
    z = s * s
    near = s * fma(polynomial("log_ratio", z, F32), z, 2.0)
    product = cast(y, F64) * log_of_all(wide, fma(near, form.log2_e[0], n))
    r, exponent = whole_and_rest(at_least(at_most(product, 200.0), -200.0), form.bias)
    return cast(fma(polynomial("exp2", r, F32), r, 1.0) * form.scale(exponent), F32)


def _power_of_float64(size: Expr, y: Expr) -> Expr:
    """exp(y * log(size)), where the logarithm is a sum of two numbers."""
    form = FORMATS[F64]
    n, f = _exponent_and_rest(size)
    below, below_low = fast_sum(const(2.0, F64), f)
    s = f / below
    s_low = fma(-s, below_low, fma(-s, below, f)) / below
    z = s * s
    z_low = fma(s + s, s_low, fma(s, s, -z))
    third = z * THIRD[0]
    third_low = fma(z, THIRD[0], -third) + fma(z, THIRD[1], z_low * THIRD[0])
    series, series_low = fast_sum(third, z * z * polynomial("log_fifth", z))
    series_low = series_low + third_low
    part = s * series
    part_low = fma(s, series, -part) + fma(s, series_low, s_low * series)
    half, half_low = fast_sum(s, part)
    turns = n * form.log_2[0]
    turns_low = fma(n, form.log_2[1], fma(n, form.log_2[0], -turns))
    log_high, log_low = fast_sum(turns, half + half)
    log_low = log_low + (turns_low + 2.0 * (half_low + (part_low + s_low)))
    log_high, log_low = fast_sum(log_of_all(size, log_high), log_low)
    exponent = y * log_high
    low = select(absolute(exponent) < 800.0, fma(y, log_high, -exponent) + y * log_low, 0.0)
    r, _, places = parted(at_least(at_most(exponent, form.exp_ends[1]), form.exp_ends[0]), 2 * form.bias)
    return times_power(exp_near_0(r + low), places)


# ---- inverse hyperbolic functions: logarithms of numbers that are known to twice the precision ----
def _root(high: Expr, low: Expr) -> tuple[Expr, Expr]:
    """Return the square root of a sum, and what its rounding left."""
    root = sqrt(high)
    return root, select(high > 0.0, (fma(-root, root, high) + low) / (root + root), 0.0)


def arcsinh(x: Expr) -> Expr:
    """log(a + sqrt(a * a + 1)) for a = |x|, as log1p(a + a * a / (1 + sqrt(a * a + 1))), with the sign of x."""
    size = absolute(x)
    far = size > FORMATS[x.type].square_end
    square = size * size
    square_low = fma(size, size, -square)
    larger = select(square > 1.0, square, 1.0)
    total, low = fast_sum(larger, select(square > 1.0, const(1.0, x.type), square))
    root, root_low = _root(total, low + square_low)
    below, below_low = root + 1.0, root_low + (1.0 - ((root + 1.0) - root))
    part = square / below
    part_low = (fma(-part, below, square) + fma(-part, below_low, square_low)) / below
    high, high_low = fast_sum(size, part)
    result = _log_1_plus(
        select(far, size - 1.0, high), select(far, 0.0, high_low + part_low), far
    )  # far out it is log(2 * a)
    return select(equal(x, 0.0), x, copysign(result, x))


def arccosh(x: Expr) -> Expr:
    """log(x + sqrt(x * x - 1)), as log1p(t + sqrt(t * t + 2 * t)) for t = x - 1."""
    far = x > FORMATS[x.type].square_end
    t = x - 1.0
    square = t * t
    twice = t + t
    larger = select(square > twice, square, twice)
    total, low = fast_sum(larger, select(square > twice, twice, square))
    root, root_low = _root(total, low + fma(t, t, -square))
    high, high_low = fast_sum(root, t)
    result = _log_1_plus(select(far, t, high), select(far, 0.0, high_low + root_low), far)
    return select(x < 1.0, NAN, result)


def arctanh(x: Expr) -> Expr:
    """log((1 + a) / (1 - a)) / 2 for a = |x|, as log1p(2 * a / (1 - a)) / 2, with the sign of x."""
    size = absolute(x)
    twice = size + size
    below = 1.0 - size
    below_low = (1.0 - below) - size
    high = twice / below
    low = fma(-high, below_low, fma(-high, below, twice)) / below
    return select(equal(x, 0.0), x, copysign(0.5 * _log_1_plus(high, low), x))
