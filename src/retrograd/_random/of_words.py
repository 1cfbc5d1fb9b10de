"""Numbers from many random words: normal ones of float32, as torch's vectorised kernel rounds them, and fractions of float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.numpy_namespace import numpy_namespace
from .._core.passes import number
from .._native.machine import is_available
from .._native.program import formula
from .._thresholds import NATIVE
from .filling import Array

_TWO_PI = 2.0 * math.pi
KERNEL = min(NATIVE, 768)  # words from which a kernel is worth its call: NumPy computes sixteen in 3 us


def normals32(words: Array) -> Array:
    """Return the normal numbers of words in blocks of sixteen: eight radii and eight angles become eight cosines and eight sines."""
    size = words.size
    if KERNEL <= size < NATIVE:  # sizes that share a plan: making one takes as long as a hundred calls
        words = np.concatenate((words, np.zeros((1 << (size - 1).bit_length()) - size, words.dtype)))
    pairs = words.view(np.int32).reshape(-1, 2, 8)
    out = np.empty(pairs.shape, np.float32)
    first, second = pairs[:, 0], pairs[:, 1]
    run = _normals.repeated((out[:, 0], out[:, 1]), first, second, apart=1) if size >= KERNEL else None
    if run is not None:
        run(0, len(pairs))
    else:
        cosines, sines = _normals(numpy_namespace, first.ravel(), second.ravel())
        out[:, 0], out[:, 1] = cosines.reshape(-1, 8), sines.reshape(-1, 8)
    return out.reshape(-1)[:size]


def doubles_of(words: Array) -> Array:
    """Return the fractions of the low 53 bits of two words each."""
    return _fractions(numpy_namespace, words[0::2], words[1::2])  # type: ignore[no-any-return]


@formula
def _fractions(xp: Any, first: Any, second: Any) -> Any:
    high, low = (xp.astype(part, dtype=np.float64) for part in (first & 0x1FFFFF, second))
    return (high * 2.0**32 + low) * 2.0**-53


def multiply_add(values: Array, scale: float, offset: float) -> Array | None:
    """Return `values * scale + offset` of many numbers of float32, rounded once; None if there is no kernel."""
    if not is_available():
        return None
    return _multiply_add(numpy_namespace, values, scale=scale, offset=offset)  # type: ignore[no-any-return]


@formula(numbers=("scale", "offset"))  # type: ignore[untyped-decorator]
def _multiply_add(xp: Any, values: Any, *, scale: float, offset: float) -> Any:
    return xp.fma(values, scale, offset)


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
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
_ROOT_HALF = int(np.float32(math.sqrt(0.5)).view(np.int32))


def _horner(xp: Any, variable: Any, coefficients: list[float]) -> Any:
    """Evaluate a polynomial by fused multiply-adds."""
    if xp.module is np:  # which has none: float64 holds the products, and is rounded to float32 after each
        wide = variable.astype(np.float64)
        total, narrow = wide * number(np, coefficients[0], wide.dtype), np.empty_like(variable)
        for coefficient in coefficients[1:-1]:
            total += number(np, coefficient, wide.dtype)
            narrow[...] = total
            total[...] = narrow
            total *= wide
        narrow[...] = np.add(total, number(np, coefficients[-1], wide.dtype), total)
        return narrow
    value = xp.fma(variable, coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        value = xp.fma(value, variable, coefficient)
    return value


@formula
def _normals(xp: Any, first: Any, second: Any) -> Any:
    """Return the cosines and sines of random angles times random radii, of words, as torch's AVX2 kernel rounds them."""
    radius = _radius(xp, first & 0xFFFFFF)
    cosine, sine = _cosine_and_sine(xp, second & 0xFFFFFF)
    return radius * cosine, radius * sine


def _radius(xp: Any, words: Any) -> Any:
    """Return sqrt(-2 log(1 - words / 2**24))."""
    uniforms = xp.astype((1 << 24) - words, dtype=np.float32) * 2.0**-24
    bits = xp.reinterpret(uniforms, np.int32)
    # Split off the exponent that leaves a significand in [sqrt(1/2), sqrt(2)).
    exponent = (bits - _ROOT_HALF) >> 23
    x = xp.reinterpret(bits - (exponent << 23), np.float32) - 1.0
    scale = xp.astype(exponent, dtype=np.float32)
    square = x * x
    y = _horner(xp, x, _LOG) * x
    y = xp.fma(y, square, scale * _LN2_LOW) - square * 0.5
    return xp.sqrt((x + y + scale * _LN2_HIGH) * -2.0)


def _cosine_and_sine(xp: Any, words: Any) -> tuple[Any, Any]:
    """Return the cosine and sine of 2 pi words / 2**24."""
    angle = (xp.astype(words, dtype=np.float32) * 2.0**-24) * _TWO_PI
    octant = (xp.astype(angle * (4.0 / math.pi), dtype=np.int32) + 1) & -2
    count = xp.astype(octant, dtype=np.float32)
    x = angle - count * _QUARTER_PI[0] - count * _QUARTER_PI[1]
    x = xp.fma(count, -_QUARTER_PI[2], x)
    square = x * x
    near_one = _horner(xp, square, _COSINE) * square
    near_one = xp.fma(near_one, square, square * -0.5) + 1.0
    near_zero = _horner(xp, square, _SINE) * square
    near_zero = xp.fma(near_zero, x, x)
    # Exchange the two where the angle is nearer to the other axis, then set the signs, all on the bits.
    cosine, sine = xp.reinterpret(near_one, np.int32), xp.reinterpret(near_zero, np.int32)
    difference = (cosine ^ sine) & -((octant >> 1) & 1)
    cosine = cosine ^ difference ^ ((~(octant - 2) & 4) << 29)
    sine = sine ^ difference ^ ((octant & 4) << 29)
    return xp.reinterpret(cosine, np.float32), xp.reinterpret(sine, np.float32)
