"""Normal numbers of float32 from random words, as torch's vectorised kernel rounds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.numpy_namespace import numpy_namespace
from .._native.program import formula
from .filling import Array

_TWO_PI = 2.0 * math.pi


def normals32(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the two normal numbers of each pair of words."""
    return _normals(numpy_namespace, first, second)  # type: ignore[no-any-return]


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
