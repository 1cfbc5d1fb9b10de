"""Sine, cosine and tangent of any angle, computed in float64 for both formats, and their inverses.

Note [Reduction of large angles]
Up to NEAR an angle less its quarter turns, x - n * pi / 2, is computed with pi / 2 in pieces; the first difference is exact.
Beyond, quarter turns are x * (2 / pi) modulo 4, of which the bits around the point matter: x is m * 2**e for an integer m, so the
product is m times the bits of 2 / pi from place e on, as integers that wrap. Both ways are computed and one is chosen, as loops
have no branches; float32 needs few bits of 2 / pi, float64 a search among twenty words of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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
    not_equal,
    select,
    sqrt,
)
from .formats import FORMATS, INF, NAN, fast_sum, polynomial

U64: Final = "u64"
NEAR: Final = 2.0**42
HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # with what roundings left
LARGE: Final = 1.5 * 2.0**52  # see Note [Adding a large number]
SIGN: Final = -(1 << 63)
NOTHING: Final = const(-0.0, F64)  # what changes nothing when it is added

# the bits of 2 / pi behind the point, in words of 64
TWO_BY_PI: Final = (
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)  # fmt: skip


class Angle(NamedTuple):
    """What is left of |x| after its quarter turns, with what rounding left if that matters, and their number in the low bits."""

    rest: Expr
    low: Expr | None
    turns: Expr


def _reduced(x: Expr) -> Angle:
    size = absolute(x)
    wide = cast(size, F64)
    shifted = fma(wide, 1 / HALF_PI[0], LARGE)
    n = shifted - LARGE
    far = wide > NEAR
    turns = bitcast(shifted, I64)
    if x.type == F32:
        rest = fma(n, -HALF_PI[1], fma(n, -HALF_PI[0], wide))
        far_turns, far_rest = _far_of_float32(size)
        return Angle(select(far, far_rest, rest), None, select(far, far_turns, turns))
    first = fma(n, -HALF_PI[0], wide)
    second = n * HALF_PI[1]
    rest = first - second
    back = rest - first
    lost = (first - (rest - back)) - (second + back)
    low = fma(n, -HALF_PI[2], lost - fma(n, HALF_PI[1], -second))
    far_turns, far_rest, far_low = _far_of_float64(size)
    return Angle(select(far, far_rest, rest), select(far, far_low, low), select(far, far_turns, turns))


# ---- far angles ----
def _window(words: list[Expr], place: Expr, count: int) -> list[Expr]:
    """Return `count` words of the bits from a place on: the words around it, halving by the bits of its number, then a shift."""
    number = place >> 6
    step = 1 << ((len(words) - count - 1).bit_length() - 1)  # words that follow the first of a window are there, too
    while step:
        chosen = not_equal(number & step, 0)
        kept = min(count + step, len(words))
        words = [select(chosen, words[i + step], words[i]) if i + step < len(words) else words[i] for i in range(kept)]
        step >>= 1
    shift = cast(place & 63, U64)
    return [(words[i] << shift) | ((words[i + 1] >> 1) >> (63 - shift)) for i in range(count)]


def _high_product(x: Expr, y: Expr) -> Expr:
    """Return the upper 64 bits of a product of integers of 53 and 64 bits."""
    mask = 0xFFFFFFFF
    x_high, x_low, y_high, y_low = x >> 32, x & mask, y >> 32, y & mask
    middle = x_low * y_high + ((x_low * y_low) >> 32)
    return x_high * y_high + (middle >> 32) + ((x_high * y_low + (middle & mask)) >> 32)


def _centred(product: Expr) -> tuple[Expr, Expr]:
    """Split quarter turns, with 62 bits behind the point, into their number and what is left, at most half of one."""
    turns = (product + (1 << 61)) >> 62
    return turns, product - (turns << 62)


def _far_of_float32(size: Expr) -> tuple[Expr, Expr]:
    bits = cast(bitcast(size, I32), I64)
    integer = cast((bits & 0x7FFFFF) | 0x800000, U64)
    words = [const(word, U64) for word in TWO_BY_PI[:4]]
    high, low = _window(words, (bits >> 23) - 152, 2)
    product = integer * high + ((integer * (low >> 32)) >> 32)
    turns, rest = _centred(cast(product, I64))
    return turns, cast(rest, F64) * (HALF_PI[0] * 2.0**-62)


def _far_of_float64(size: Expr) -> tuple[Expr, Expr, Expr]:
    bits = bitcast(size, I64)
    integer = cast((bits & ((1 << 52) - 1)) | (1 << 52), U64)
    words = [const(word, U64) for word in (0, *TWO_BY_PI)]
    first, second, third = _window(words, (bits >> 52) - 1013, 3)
    middle = integer * second
    low = middle + _high_product(integer, third)
    high = integer * first + _high_product(integer, second) + cast(low < middle, U64)
    turns, rest = _centred(cast(high, I64))
    rounded = cast(rest, F64)
    left = cast(rest - cast(rounded, I64), F64) + cast(cast(low >> 1, I64), F64) * 2.0**-63
    total, total_low = fast_sum(rounded, left)
    scale = HALF_PI[0] * 2.0**-62
    angle = total * scale
    return turns, angle, fma(total, scale, -angle) + fma(total, HALF_PI[1] * 2.0**-62, total_low * scale)


# ---- near 0 ----
def sine_near_0(angle: Angle, precision: str) -> tuple[Expr, Expr]:
    """Return the sine of what is left, as a sum."""
    r, low, _ = angle
    z = r * r
    factor = polynomial("sin", z, precision)
    if low is None:
        return fma(r * z, factor, r), NOTHING
    return r, fma(low, fma(z, -0.5, 1.0), r * z * factor)


def cosine_near_0(angle: Angle, precision: str) -> tuple[Expr, Expr]:
    """Return the cosine of what is left, as a sum."""
    r, low, _ = angle
    z = r * r
    factor = polynomial("cos", z, precision)
    if low is None:
        return fma(fma(factor, z, -0.5), z, 1.0), NOTHING
    half = 0.5 * z
    most = 1.0 - half
    return most, ((1.0 - most) - half) + fma(r, -low, z * z * factor)


def _with_sign(value: Expr, flip: Expr, x: Expr) -> Expr:
    """Flip the sign by the highest bit of an integer; what infinities and NaN have is NaN."""
    flipped = bitcast(bitcast(value, I64) ^ (flip & SIGN), F64)
    return select(absolute(x) < INF, cast(flipped, x.type), NAN)


def _sign_of(x: Expr) -> Expr:
    return bitcast(cast(x, F64), I64)


def sin(x: Expr) -> Expr:
    """Return the sine."""
    angle = _reduced(x)
    sine, cosine = (part + tail for part, tail in (sine_near_0(angle, x.type), cosine_near_0(angle, x.type)))
    odd = not_equal(angle.turns & 1, 0)
    return _with_sign(select(odd, cosine, sine), (angle.turns << 62) ^ _sign_of(x), x)


def cos(x: Expr) -> Expr:
    """Return the cosine."""
    angle = _reduced(x)
    sine, cosine = (part + tail for part, tail in (sine_near_0(angle, x.type), cosine_near_0(angle, x.type)))
    odd = not_equal(angle.turns & 1, 0)
    return _with_sign(select(odd, sine, cosine), (angle.turns + 1) << 62, x)


def tan(x: Expr) -> Expr:
    """Return the tangent: the sine by the cosine, or after an odd number of quarter turns the cosine by the sine."""
    angle = _reduced(x)
    sine, cosine = sine_near_0(angle, x.type), cosine_near_0(angle, x.type)
    if x.type == F64:
        sine, cosine = fast_sum(*sine), fast_sum(*cosine)
    odd = not_equal(angle.turns & 1, 0)
    above, above_low = (select(odd, c, s) for s, c in zip(sine, cosine, strict=True))
    below, below_low = (select(odd, s, c) for s, c in zip(sine, cosine, strict=True))
    flip = (angle.turns << 63) ^ _sign_of(x)
    if x.type == F32:
        return _with_sign((above + above_low) / (below + below_low), flip, x)
    ratio = above / below
    left = fma(-ratio, below, above) + fma(-ratio, below_low, above_low)
    return _with_sign(ratio + left / below, flip, x)


# ---- inverses ----
def _from_turn(part: Expr, turn: Expr | float, low: Expr | float) -> Expr:
    """Turn - part, where low is what the rounding of turn left."""
    return turn - (part - low)


def _arcsin_parts(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Return whether |x| is below 1/2, and s + tail = asin(s): s is |x| there, and sqrt((1 - |x|) / 2) elsewhere."""
    size = absolute(x)
    near = size < 0.5
    half = (1.0 - size) * 0.5
    z = select(near, size * size, half)
    s = select(near, size, sqrt(half))
    return near, s, s * z * polynomial("asin", z)


def _less_twice(turn: float, low: float, s: Expr, tail: Expr) -> Expr:
    """Turn - 2 * (s + tail), where low is what the rounding of turn left."""
    twice = s + s
    rest = turn - twice
    lost = (turn - rest) - twice
    return rest - (tail + tail - (lost + low))


def arcsin(x: Expr) -> Expr:
    """Return the inverse sine."""
    high, low = FORMATS[x.type].pi
    near, s, tail = _arcsin_parts(x)
    return copysign(select(near, s + tail, _less_twice(high / 2, low / 2, s, tail)), x)


def arccos(x: Expr) -> Expr:
    """Return the inverse cosine."""
    high, low = FORMATS[x.type].pi
    near, s, tail = _arcsin_parts(x)
    part = s + tail
    beyond = select(x > 0.0, part + part, _less_twice(high, low, s, tail))
    return select(near, _from_turn(copysign(part, x), high / 2, low / 2), beyond)


def _arctan_up_to_1(t: Expr) -> Expr:
    z = t * t
    return fma(t * z, polynomial("atan", z), t)


def arctan(x: Expr) -> Expr:
    """Return the inverse tangent."""
    high, low = FORMATS[x.type].pi
    size = absolute(x)
    far = size > 1.0
    part = _arctan_up_to_1(select(far, 1.0 / size, size))
    return copysign(select(far, _from_turn(part, high / 2, low / 2), part), x)


def arctan2(y: Expr, x: Expr) -> Expr:
    """Return the angle of the point (x, y), with the sign of y."""
    form = FORMATS[x.type]
    high, low = form.pi
    across, up = absolute(x), absolute(y)
    steep = up > across
    ratio = select(steep, across, up) / select(steep, up, across)
    alike = equal(up, across)  # also where both are infinite, or both zero
    part = _arctan_up_to_1(select(alike, select(equal(up, 0.0), const(0.0, x.type), 1.0), ratio))
    left = bitcast(x, form.bits) < 0
    turn = select(steep, const(high / 2, x.type), select(left, const(high, x.type), 0.0))
    rest = select(steep, const(low / 2, x.type), select(left, const(low, x.type), 0.0))
    # the turn less the part, but for points to the right of the axis and below the diagonal, and to the left and above
    minus = select(steep, select(left, -part, part), select(left, part, -part))
    return copysign(_from_turn(minus, turn, rest), y)
