"""Elementwise functions of one tensor that few programs use: hyperbolic inverses, angles, parts of a number."""

from __future__ import annotations

import math

from .._core.primitive import behind, elementwise, general
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import is_complex, wide

PER_DEGREE = math.pi / 180

arcsinh = elementwise("arcsinh", torch="asinh", dx=lambda xp, g, x: g * xp.rsqrt(x * x + 1))
arccosh = elementwise(
    "arccosh",
    torch="acosh",
    dx=lambda xp, g, x: g * (xp.rsqrt(x - 1) * xp.rsqrt(x + 1) if is_complex(x) else xp.rsqrt(x * x - 1)),
)
arctanh = elementwise("arctanh", torch="atanh", dx=lambda xp, g, x: g / (1 - x * x))
exp2 = elementwise("exp2", dx=lambda xp, g, out: g * (out * math.log(2)))
deg2rad = elementwise(
    "deg2rad",
    implementation=wide(lambda xp, x: x * PER_DEGREE),
    dx=lambda xp, g: g * PER_DEGREE,
)
rad2deg = elementwise(
    "rad2deg",
    implementation=wide(lambda xp, x: x * (1 / PER_DEGREE)),
    dx=lambda xp, g: g * (1 / PER_DEGREE),
)


def _frac(xp, x):
    whole = xp.trunc(x)
    return xp.module.subtract(x, whole, whole) if whole.ndim else x - whole


frac = elementwise("frac", implementation=wide(_frac), dx=lambda xp, g: g)


def _sinc(xp, x):
    turned = math.pi * x
    out = xp.sin(turned) / turned
    return (
        out
        if xp.module.count_nonzero(turned) == turned.size
        else xp.where(turned == 0, 1, out).astype(x.dtype, copy=False)
    )


def _sinc_dx(xp, g, x):
    # 0 near 0, where the quotient is 0 / 0
    turned = math.pi * x
    square = x * turned
    zero = xp.equal(square, 0)
    slope = (turned * xp.cos(turned) - xp.sin(turned)) / xp.where(zero, xp.ones_like(square), square)
    return xp.where(zero, xp.zeros_like(g * x), g * slope)


sinc = elementwise("sinc", implementation=wide(_sinc), dx=_sinc_dx)


# ---- parts of a number ----
def _angle(xp, x):
    if x.dtype.kind == "c":
        return xp.module.angle(x)
    return xp.where(x < 0, math.pi, xp.where(x == x, 0, x)).astype(x.dtype, copy=False)  # NaN stays


def _angle_dx(xp, g, x):
    if not is_complex(x):
        return xp.zeros_like(g)
    square = xp.real(x * xp.conj(x))
    zero = xp.equal(square, 0)
    turned = g * (-1j * xp.conj(x) / xp.where(zero, xp.ones_like(square), square))
    return xp.where(zero, xp.zeros_like(turned), turned)


angle = elementwise("angle", implementation=wide(_angle), dx=_angle_dx)
conj_physical = elementwise(
    "conj_physical",
    implementation=lambda xp, x: xp.conj(x) if x.dtype.kind == "c" else x.copy(),
    dx=lambda xp, g: xp.conj(g),
)
signbit = elementwise(
    "signbit",
    inputs=("x",),
    implementation=lambda xp, x: xp.module.signbit(x) if x.dtype.kind in "fV" else xp.less(x, 0),
)

isposinf = elementwise("isposinf", inputs=("x",), implementation=lambda xp, x: xp.equal(x, math.inf))
isneginf = elementwise("isneginf", inputs=("x",), implementation=lambda xp, x: xp.equal(x, -math.inf))
isreal = elementwise(
    "isreal",
    inputs=("x",),
    implementation=lambda xp, x: xp.equal(x.imag, 0) if x.dtype.kind == "c" else xp.module.ones(x.shape, bool),
)


def _nan_to_num(xp, x, *, nan, posinf, neginf):
    if x.dtype.kind == "c":
        return xp.complex(*[_nan_to_num(xp, part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag)])
    if x.dtype.kind in "biu" or xp.isfinite(x).all():
        return x.copy()
    out = xp.where(xp.isnan(x), _as(x, nan), x)
    out = xp.where(x == math.inf, _as(x, posinf), out)
    return xp.where(x == -math.inf, _as(x, neginf), out)


def _as(x, number):
    return x.dtype.type(number)


nan_to_num = elementwise(
    "nan_to_num",
    statics=("nan", "posinf", "neginf"),
    implementation=_nan_to_num,
    dx=lambda xp, g, x: xp.where(xp.isfinite(x), g, 0),
)


def _logit(xp, x, *, eps):
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.module.log(x / (1 - x))


def _logit_dx(xp, g, x, eps):
    slope = x * (1 - x)
    if eps is None:
        return xp.where(xp.less(slope, 0), math.nan, g / slope)  # outside of [0, 1]
    inside = xp.logical_and(xp.greater_equal(x, eps), xp.less_equal(x, 1 - eps))
    return xp.where(inside, g / xp.where(inside, slope, xp.ones_like(slope)), xp.zeros_like(g))


logit = elementwise("logit", statics=("eps",), implementation=wide(_logit), dx=_logit_dx)


@general(outputs=2, batch=behind)
def frexp(xp, x):
    """Split into a mantissa in [0.5, 1) and an exponent."""
    mantissa, exponent = xp.module.frexp(x.astype("float32") if x.dtype.itemsize == 2 else x)
    return mantissa.astype(x.dtype, copy=False), exponent


@frexp.vjp("x")
def frexp_dx(xp, g, out):
    return g[0] * xp.exp2(xp.astype(-out[1], dtype=g[0].dtype))


@frexp.jvp
def frexp_jvp(xp, t, out):
    return t * xp.exp2(xp.astype(-out[1], dtype=t.dtype)), None
