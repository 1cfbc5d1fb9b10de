"""Sine, cosine and tangent of any angle, and their inverses.

Note [Reduction of large angles]
Up to NEAR an angle less its quarter turns, x - n * pi / 2, is computed with pi / 2 in pieces; the first difference is exact.
Beyond, quarter turns are x * (2 / pi) modulo 4, of which the bits around the point matter: x is m * 2**e for an integer m, so the
product is m times the bits of 2 / pi from place e on, as integers that wrap. Float32 needs few bits of 2 / pi, and goes on in float64;
float64 needs a search among twenty words of them. That takes several times as long, and few angles are so large: blocks that have none
do without (`expression.rare`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from .expression import (
    F32,
    F64,
    I32,
    I64,
    WIDTH,
    Expr,
    absolute,
    bitcast,
    cast,
    const,
    copysign,
    equal,
    fma,
    not_equal,
    rare,
    select,
    sqrt,
)
from .formats import FORMATS, INF, NAN, fast_sum, polynomial

U64: Final = "u64"
NEAR: Final = {F32: 2.0**15, F64: 2.0**42}
HALF_PI: Final = {  # with what roundings left
    F32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    F64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
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


def _near(size: Expr) -> Angle:
    form = FORMATS[size.type]
    high, middle, lowest = HALF_PI[size.type]
    large = 1.5 * 2.0**form.mantissa  # see Note [Adding a large number]
    shifted = fma(size, 1 / high, large)
    n = shifted - large
    first = fma(n, -high, size)
    second = n * middle
    rest = first - second
    lost = (first - rest) - second  # exact, as the last bit of the first stands before all that the second may have
    low = fma(n, -lowest, lost - fma(n, middle, -second))
    return Angle(rest, low, bitcast(shifted, form.bits))


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


def _far(size: Expr) -> Angle:
    return _far_of_float32(size) if size.type == F32 else _far_of_float64(size)


def _far_of_float32(size: Expr) -> Angle:
    bits = cast(bitcast(size, I32), I64)
    integer = cast((bits & 0x7FFFFF) | 0x800000, U64)
    words = [const(word, U64) for word in (0, *TWO_BY_PI[:4])]
    high, low = _window(words, (bits >> 23) - 88, 2)
    product = integer * high + ((integer * (low >> 32)) >> 32)
    turns, rest = _centred(cast(product, I64))
    return Angle(cast(rest, F64) * (HALF_PI[F64][0] * 2.0**-62), None, cast(turns, I32))


def _far_of_float64(size: Expr) -> Angle:
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
    scale = HALF_PI[F64][0] * 2.0**-62
    angle = total * scale
    angle_low = fma(total, scale, -angle) + fma(total, HALF_PI[F64][1] * 2.0**-62, total_low * scale)
    return Angle(angle, angle_low, turns)


# ---- near 0 ----
def sine_near_0(angle: Angle, precision: str) -> tuple[Expr, Expr]:
    """Return the sine of what is left, as a sum."""
    r, low, _ = angle
    z = r * r
    factor = polynomial("sin", z, precision)
    if low is None:
        return fma(r * z, factor, r), NOTHING
    return r, fma(low, 1.0 - 0.5 * z, r * z * factor)


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


def _of_any_angle(x: Expr, function: Callable[[Angle, Expr], Expr]) -> Expr:
    """Apply a function to what is left of |x|, which is also given the bits of x."""
    size, bits = absolute(x), bitcast(x, FORMATS[x.type].bits)
    far = select(size < INF, function(_far(size), bits), NAN)
    return rare(size > NEAR[x.type], far, function(_near(size), bits))


def _turned(value: Expr, flip: Expr) -> Expr:
    """Round to the format of an integer, and flip the sign by the integer's highest bit."""
    type = F32 if flip.type == I32 else F64
    sign = -(1 << (WIDTH[type] - 1))
    return bitcast(bitcast(cast(value, type), flip.type) ^ (flip & sign), type)


def _at_quarter_turns(turns: Expr) -> Expr:
    """Put the second lowest bit of a number of turns, which is set after half a turn, into the highest."""
    return turns << (WIDTH[turns.type] - 2)


def sin(x: Expr) -> Expr:
    """Return the sine."""

    def of(angle: Angle, bits: Expr) -> Expr:
        sine, cosine = (part + tail for part, tail in (sine_near_0(angle, x.type), cosine_near_0(angle, x.type)))
        odd = not_equal(angle.turns & 1, 0)
        return _turned(select(odd, cosine, sine), _at_quarter_turns(angle.turns) ^ bits)

    return _of_any_angle(x, of)


def cos(x: Expr) -> Expr:
    """Return the cosine."""

    def of(angle: Angle, bits: Expr) -> Expr:
        sine, cosine = (part + tail for part, tail in (sine_near_0(angle, x.type), cosine_near_0(angle, x.type)))
        odd = not_equal(angle.turns & 1, 0)
        return _turned(select(odd, sine, cosine), _at_quarter_turns(angle.turns + 1))

    return _of_any_angle(x, of)


def tan(x: Expr) -> Expr:
    """Return the tangent: the sine by the cosine, or after an odd number of quarter turns the cosine by the sine."""

    def of(angle: Angle, bits: Expr) -> Expr:
        sine, cosine = fast_sum(*sine_near_0(angle, x.type)), fast_sum(*cosine_near_0(angle, x.type))
        odd = not_equal(angle.turns & 1, 0)
        above, above_low = (select(odd, c, s) for s, c in zip(sine, cosine, strict=True))
        below, below_low = (select(odd, s, c) for s, c in zip(sine, cosine, strict=True))
        ratio = above / below
        left = fma(-ratio, below, above) + fma(-ratio, below_low, above_low)
        return _turned(ratio + left / below, (angle.turns << (WIDTH[angle.turns.type] - 1)) ^ bits)

    return _of_any_angle(x, of)


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
