"""Draw normally distributed values by torch's two Box-Muller algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arithmetic import libm, multiply_add32, multiply_add64
from .filling import BLOCK, FEW, SIGNIFICAND_BITS, Array, cast, draw_complex, fill, name_of, refuse_unless
from .generator import Generator

if TYPE_CHECKING:
    import numpy.typing as npt

_TWO_PI = 2.0 * math.pi
SINGLE = np.dtype(np.float32)
log1p, sqrt, cos, sin = math.log1p, math.sqrt, math.cos, math.sin


def normal(
    gen: Generator,
    shape: Sequence[int],
    np_dtype: npt.DTypeLike,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    contiguous: bool = True,
) -> Array:
    """Draw as torch's normal_, on a contiguous tensor or on a strided one."""
    if len(shape) == 1 and shape[0] < 16 and mean == 0.0 and std == 1.0 and np_dtype is SINGLE:  # what is quickest
        return np.array(_few_normals(gen, shape[0]), SINGLE)
    dtype = np.dtype(np_dtype)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    if dtype.kind == "c" or dtype.fields:
        # The variance is split evenly between the two parts.
        part_std = std / math.sqrt(2.0)
        return draw_complex(
            shape, dtype, lambda parts, real: normal(gen, parts, real, mean, part_std, contiguous=contiguous)
        )
    refuse_unless(dtype, SIGNIFICAND_BITS, "normal_kernel_cpu")
    if contiguous and math.prod(shape) >= 16:
        return _normal_in_sixteens(gen, shape, dtype, mean, std)
    if math.prod(shape) <= FEW and mean == 0.0 and std == 1.0 and dtype.itemsize > 2:
        few: Array = np.array(_few_normals(gen, math.prod(shape)), dtype)
        return few if len(shape) == 1 else few.reshape(shape)
    return fill(shape, dtype, lambda count: multiply_add64(standard_normals(gen, count), std, mean))


def standard_normals(gen: Generator, count: int) -> Array:
    """Draw one by one, in pairs; the second of a pair waits in the generator."""
    if count <= FEW:
        return np.array(_few_normals(gen, count), np.float64)
    samples = np.empty(count)
    waiting = 0
    if gen.next_normal is not None:
        samples[0], waiting = gen.next_normal, 1
        gen.next_normal = None
    uniforms = gen.unit_doubles((count - waiting + 1) // 2 * 2)
    radius = np.sqrt(-2.0 * libm("log1p", -uniforms[1::2]))
    angle = _TWO_PI * uniforms[0::2]
    pairs = np.empty(uniforms.size)
    pairs[0::2] = radius * libm("cos", angle)
    pairs[1::2] = radius * libm("sin", angle)
    samples[waiting:] = pairs[: count - waiting]
    if pairs.size > count - waiting:
        gen.next_normal = float(pairs[-1])
    return samples


def _few_normals(gen: Generator, count: int) -> list[float]:
    few: list[float] = []
    if (waiting := gen.next_normal) is not None and count:
        few.append(waiting)
        gen.next_normal = None
    uniforms = iter(gen.few_doubles((count - len(few) + 1) // 2 * 2))
    for turn in uniforms:
        radius, angle = sqrt(-2.0 * log1p(-next(uniforms))), _TWO_PI * turn
        few.append(radius * cos(angle))
        few.append(radius * sin(angle))
    if len(few) > count:
        gen.next_normal = few.pop()
    return few


def _normal_in_sixteens(gen: Generator, shape: Sequence[int], dtype: np.dtype[Any], mean: float, std: float) -> Array:
    """Draw in blocks of sixteen: eight radii and eight angles become eight cosines and eight sines."""
    is_double = name_of(dtype) == "float64"
    out = np.empty(math.prod(shape), dtype)
    remainder = out.size % 16
    whole = out.size - remainder
    for start in range(0, whole, BLOCK):
        stop = min(start + BLOCK, whole)
        count, unused, redone = stop - start, 0, 0
        if remainder and stop == whole:
            # torch draws for the remainder too, but then redoes the last sixteen elements with new draws.
            # Its kernel for 16-bit floats does not draw for the remainder.
            unused, redone = (remainder if dtype.itemsize > 2 else 0), 16
        draw = gen.unit_doubles if is_double else gen.random32
        drawn = draw(count + unused + redone)
        if unused:
            drawn = np.concatenate((drawn[:count], drawn[count + unused :]))
        samples = _box_muller(drawn.reshape(-1, 2, 8))
        samples = (multiply_add64 if is_double else multiply_add32)(samples, std, mean)
        samples = cast(samples, dtype)
        out[start:stop] = samples[:count]
        if redone:
            out[-16:] = samples[-16:]
    return out.reshape(shape)


def _box_muller(drawn: Array) -> Array:
    """Return standard normals in the precision of the draws, which are float64 values or 32-bit words."""
    if drawn.dtype == np.float64:
        radius = np.sqrt(-2.0 * libm("log", (1.0 - drawn[:, 0]).ravel()))
        angle = (_TWO_PI * drawn[:, 1]).ravel()
        cosine, sine = libm("cos", angle), libm("sin", angle)
    else:
        words = (drawn & np.uint32(0xFFFFFF)).view(np.int32)
        radius = _radius32(words[:, 0].ravel())
        cosine, sine = _cosine_and_sine32(words[:, 1].ravel())
    samples = np.empty(drawn.shape, radius.dtype)
    samples[:, 0] = (radius * cosine).reshape(-1, 8)
    samples[:, 1] = (radius * sine).reshape(-1, 8)
    return samples.ravel()


# The polynomials of Cephes' logf, sinf and cosf, which torch's vectorised float32 normal evaluates.
_LOG = [
    float(np.float32(coefficient))
    for coefficient in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
]
_SINE = [float(np.float32(c)) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
_COSINE = [float(np.float32(c)) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]
# ln 2 and pi / 4, each in parts of which the leading ones multiply a small integer exactly.
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_QUARTER_PI = (
    np.float32(0.78515625),
    np.float32(2.4187564849853515625e-4),
    float(np.float32(3.77489497744594108e-8)),
)


def _horner32(variable: Array, coefficients: list[float]) -> Array:
    """Evaluate a polynomial, rounding to float32 after every fused multiply-add."""
    wide = variable * np.float64(coefficients[0])
    narrow = np.empty(variable.shape, np.float32)
    for coefficient in coefficients[1:-1]:
        wide += coefficient
        narrow[...] = wide
        wide[...] = narrow
        wide *= variable
    wide += coefficients[-1]
    narrow[...] = wide
    return narrow


def _radius32(words: Array) -> Array:
    """Return sqrt(-2 log(1 - words / 2**24)) as torch's AVX2 kernel rounds it."""
    uniforms = (np.int32(1 << 24) - words).astype(np.float32) * np.float32(2.0**-24)
    bits = uniforms.view(np.int32)
    # Split off the exponent that leaves a significand in [sqrt(1/2), sqrt(2)).
    exponent = (bits - np.float32(math.sqrt(0.5)).view(np.int32)) >> 23
    x = (bits - (exponent << 23)).view(np.float32) - np.float32(1.0)
    scale = exponent.astype(np.float32)
    square = x * x
    y: Array = _horner32(x.astype(np.float64), _LOG)
    y *= x
    y = (y * square.astype(np.float64) + scale * _LN2_LOW).astype(np.float32)
    y -= square * np.float32(0.5)
    x += y
    x += scale * _LN2_HIGH
    radius: Array = np.sqrt(x * np.float32(-2.0))
    return radius


def _cosine_and_sine32(words: Array) -> tuple[Array, Array]:
    """Return the cosine and sine of 2 pi words / 2**24 as torch's AVX2 kernel rounds them."""
    angle = (words.astype(np.float32) * np.float32(2.0**-24)) * np.float32(_TWO_PI)
    octant = ((angle * np.float32(4.0 / math.pi)).astype(np.int32) + np.int32(1)) & np.int32(-2)
    count = octant.astype(np.float32)
    x = angle - count * _QUARTER_PI[0]
    x -= count * _QUARTER_PI[1]
    x = (x - count * np.float64(_QUARTER_PI[2])).astype(np.float32)
    square = x * x
    wide_square = square.astype(np.float64)
    near_one = _horner32(wide_square, _COSINE)
    near_one *= square
    near_one = (near_one * wide_square - square * np.float32(0.5)).astype(np.float32)
    near_one += np.float32(1.0)
    near_zero = _horner32(wide_square, _SINE)
    near_zero *= square
    near_zero = (near_zero * x.astype(np.float64) + x).astype(np.float32)
    # Exchange the two where the angle is nearer to the other axis, then set the signs, all on the bits.
    cosine, sine = near_one.view(np.int32), near_zero.view(np.int32)
    difference = (cosine ^ sine) & -((octant >> 1) & np.int32(1))
    cosine ^= difference
    sine ^= difference
    cosine ^= (~(octant - np.int32(2)) & np.int32(4)) << np.int32(29)
    sine ^= (octant & np.int32(4)) << np.int32(29)
    return near_one, near_zero
