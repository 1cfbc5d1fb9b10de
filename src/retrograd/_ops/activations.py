"""Activation functions and their backwards, which are operations of their own, as torch's: one pass over memory.

The backward of f is `f_back(g, x) = g f'(x)`: linear in g, with the slope `g f''(x)` in x. Everything is a formula: see Note [Formulas].
"""

from __future__ import annotations

import math

import numpy as np

from .._core.fused import fused
from .._core.numpy_namespace import DENSITY, numpy_namespace
from .._core.primitive import elementwise
from .._native.program import NATIVE, formula
from . import elementwise as e


# ---- silu ----
@formula
def _silu(xp, x):
    return x / (xp.exp(-x) + 1)


@formula
def _silu_back(xp, g, x):
    s = 1 / (xp.exp(-x) + 1)
    return s * ((1 - s) * x + 1) * g


def _silu_curvature(xp, x):
    s = xp.sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


silu = elementwise("silu", implementation=_silu, dx=lambda xp, g, x: xp.silu_back(g, x))
silu_back = elementwise(
    "silu_back",
    torch="silu_backward",
    implementation=_silu_back,
    dx=lambda xp, g, y: xp.silu_back(g, y),
    dy=lambda xp, t, x, y: t * x * _silu_curvature(xp, y),
)


# ---- mish: x tanh(softplus(x)), where tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), which is 1 beyond 20 ----
def _mish_parts(xp, x):
    near = xp.bounded(x, None, 20)
    power = xp.exp(near)
    return near, power, (power + 2) * power


@formula
def _mish(xp, x):
    _, _, n = _mish_parts(xp, x)
    return n / (n + 2) * x


@formula
def _mish_back(xp, g, x):
    near, power, n = _mish_parts(xp, x)  # beyond 20 the power stays, and a large x would bring back what has vanished
    below = n + 2
    slope = power / below * ((power + 1) * 4 / below) * near + n / below
    return (slope + x * 0) * g  # at infinity NaN, as torch's


def _mish_curvature(xp, x):
    # with t = tanh(softplus(x)) and s = sigmoid(x): t' = s (1 - t^2), t'' = s (1 - t^2) (1 - s - 2 t s)
    s, t = xp.sigmoid(x), xp.tanh(xp.softplus(x))
    slope = s * (1 - t * t)
    return slope * (2 + x * (1 - s - 2 * t * s))


mish = elementwise("mish", implementation=_mish, dx=lambda xp, g, x: xp.mish_back(g, x))
mish_back = elementwise(
    "mish_back",
    torch="mish_backward",
    implementation=_mish_back,
    dx=lambda xp, g, y: xp.mish_back(g, y),
    dy=lambda xp, t, x, y: t * x * _mish_curvature(xp, y),
)


# ---- gelu: x times the normal distribution function, or an approximation of it by tanh ----
ROOT = math.sqrt(2 / math.pi)
CUBIC = 0.044715


@formula(slow=True)
def _gelu(xp, x, *, approximate):
    if approximate == "tanh":
        # (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 y)), which loses no digits below 0
        return x / (xp.exp((x * x * (-2 * ROOT * CUBIC) - 2 * ROOT) * x) + 1)
    return xp.exact_gelu(x)


@formula(slow=True)
def _gelu_back(xp, g, x, *, approximate):
    if approximate == "tanh":
        square = x * x
        t = xp.tanh((square * (ROOT * CUBIC) + ROOT) * x)
        slope = (square * (3 * CUBIC * ROOT) + ROOT) * x
        return (t + 1 + (1 - t * t) * slope) * 0.5 * g
    return xp.exact_gelu_slope(x) * g


def _gelu_curvature(xp, x, approximate):
    if approximate != "tanh":
        return DENSITY * (2 - x * x) * xp.exp(-0.5 * (x * x))
    square = x * x
    t = xp.tanh(ROOT * x * (1 + CUBIC * square))
    flat = 1 - t * t
    first = ROOT * (1 + 3 * CUBIC * square)
    return flat * (first - x * t * (first * first) + 3 * CUBIC * ROOT * square)


gelu = elementwise(
    "gelu",
    statics=("approximate",),
    implementation=_gelu,
    dx=lambda xp, g, x, approximate: xp.gelu_back(g, x, approximate=approximate),
)
gelu_back = elementwise(
    "gelu_back",
    torch="gelu_backward",
    statics=("approximate",),
    implementation=_gelu_back,
    dx=lambda xp, g, y, approximate: xp.gelu_back(g, y, approximate=approximate),
    dy=lambda xp, t, x, y, approximate: t * x * _gelu_curvature(xp, y, approximate),
)


# ---- elu, selu, celu: scale x above 0, scale alpha (exp(input_scale x) - 1) below ----
ELU = ("alpha", "scale", "input_scale")


@formula(numbers=ELU, slow=True)
def _elu(xp, x, *, alpha, scale, input_scale):
    return xp.bounded(x, 0, None) * scale + xp.expm1(xp.bounded(x, None, 0) * input_scale) * (alpha * scale)


@formula(numbers=ELU)
def _elu_back(xp, g, x, *, alpha, scale, input_scale):
    # NaN has the slope of what is above 0, as in torch
    return xp.where(x <= 0, xp.exp(x * input_scale) * (alpha * scale * input_scale), scale) * g


def _elu_dx(xp, g, x, alpha, scale, input_scale):
    return xp.elu_back(g, x, alpha=alpha, scale=scale, input_scale=input_scale)


def _elu_back_dx(xp, g, y, alpha, scale, input_scale):
    return xp.elu_back(g, y, alpha=alpha, scale=scale, input_scale=input_scale)


def _elu_back_dy(xp, t, x, y, alpha, scale, input_scale):
    bent = (alpha * scale * input_scale * input_scale) * xp.exp(xp.where(xp.greater(y, 0), 0, y) * input_scale)
    return t * x * xp.where(xp.greater(y, 0), 0, bent)


elu = elementwise("elu", statics=ELU, implementation=_elu, dx=_elu_dx, shows={"CeluBackward0": "alpha self"})
elu_back = elementwise(
    "elu_back", torch="elu_backward", statics=ELU, implementation=_elu_back, dx=_elu_back_dx, dy=_elu_back_dy
)


# ---- softplus: log(1 + exp(beta x)) / beta, and x itself beyond a threshold ----
SOFT = ("beta", "threshold")


@formula(numbers=SOFT, slow=True)
def _soft(xp, x, *, beta, threshold):
    scaled = x * beta
    return xp.where(scaled > threshold, x, xp.log1p(xp.exp(scaled)) / beta)


@formula(numbers=SOFT)
def _soft_back(xp, g, x, *, beta, threshold):
    scaled = x * beta
    return xp.where(scaled > threshold, 1, 1 / (xp.exp(-scaled) + 1)) * g


def _soft_curvature(xp, x, beta, threshold):
    s = xp.sigmoid(x * beta)
    return xp.where(xp.greater(x * beta, threshold), 0, s * (1 - s) * beta)


soft = elementwise(
    "softplus_up_to",
    torch="softplus",
    statics=SOFT,
    implementation=_soft,
    dx=lambda xp, g, x, beta, threshold: xp.softplus_back(g, x, beta=beta, threshold=threshold),
)
soft_back = elementwise(
    "softplus_back",
    torch="softplus_backward",
    statics=SOFT,
    implementation=_soft_back,
    dx=lambda xp, g, y, beta, threshold: xp.softplus_back(g, y, beta=beta, threshold=threshold),
    dy=lambda xp, t, x, y, beta, threshold: t * x * _soft_curvature(xp, y, beta, threshold),
)


# ---- two slopes ----
SLOPE = ("negative_slope",)


@formula(numbers=SLOPE)
def _leaky(xp, x, *, negative_slope):
    return xp.where(x > 0, x, x * negative_slope)


@formula(numbers=SLOPE)
def _leaky_back(xp, g, x, *, negative_slope):
    return xp.where(x > 0, g, g * negative_slope)  # NaN has the slope of what is below 0, as in torch


leaky_relu = elementwise(
    "leaky_relu",
    statics=SLOPE,
    implementation=_leaky,
    dx=lambda xp, g, x, negative_slope: xp.leaky_relu_back(g, x, negative_slope=negative_slope),
)
leaky_relu_back = elementwise(
    "leaky_relu_back",
    torch="leaky_relu_backward",
    statics=SLOPE,
    implementation=_leaky_back,
    dx=lambda xp, g, y, negative_slope: xp.leaky_relu_back(g, y, negative_slope=negative_slope),
    dy=lambda xp, t: xp.zeros_like(t),
)
prelu = elementwise(
    "prelu",
    torch="_prelu_kernel",
    implementation=formula(lambda xp, x, y: xp.where(x > 0, x, y * x)),
    dx=lambda xp, g, x, y: xp.where(xp.greater(x, 0), g, g * y),
    dy=lambda xp, g, x: xp.where(xp.greater(x, 0), 0, g * x),
    shows="self weight=y",
)
rrelu = elementwise(
    "rrelu",
    torch="rrelu_with_noise",
    inputs=("x", "y"),
    statics=("lower", "upper", "training"),
    implementation=formula(lambda xp, x, y, *, lower, upper, training: x * y, numbers=("lower", "upper")),
    dx=lambda xp, g, y: g * y,
    shows="noise=y",
)


# ---- straight pieces ----
def _scaled_inside(xp, g, x, low, high, factor):
    """Multiply by a number strictly between two bounds; nothing passes elsewhere, NaN neither."""
    return xp.where(xp.logical_and(xp.greater(x, low), xp.less(x, high)), g * factor, 0)


hardsigmoid = elementwise(
    "hardsigmoid",
    implementation=formula(lambda xp, x: xp.bounded(x + 3, 0, 6) / 6),
    dx=lambda xp, g, x: _scaled_inside(xp, g, x, -3, 3, 1 / 6),
)
hardswish = elementwise(
    "hardswish",
    implementation=formula(lambda xp, x: xp.bounded(x + 3, 0, 6) * x / 6),
    dx=lambda xp, g, x: _hardswish_dx(xp, g, x),
)


def _hardswish_dx(xp, g, x):
    # 0 at -3, 1 at 3; NaN passes
    inside = xp.where(xp.less(x, 3), g * (x / 3 + 0.5), g)
    return xp.where(xp.less_equal(x, -3), 0, inside)


def _outside(xp, x, low, high):
    return xp.logical_or(xp.less_equal(x, low), xp.greater_equal(x, high))


def _within(xp, x, low, high):
    return xp.logical_and(xp.greater_equal(x, low), xp.less_equal(x, high))


def _gate(name, stopped):
    """Return what passes a gradient on but for the places that `stopped` names; its own derivative by these is 0, not none, as torch's."""

    @formula(numbers=("low", "high"))
    def implementation(xp, g, x, *, low, high):
        return xp.where(stopped(xp, x, low, high), 0, g)

    return elementwise(
        f"{name}_back",
        torch=f"{name}_backward",
        statics=("low", "high"),
        implementation=implementation,
        dx=lambda xp, g, y, low, high: getattr(xp, f"{name}_back")(g, y, low=low, high=high),
        dy=lambda xp, t: xp.zeros_like(t),
    )


hardtanh = elementwise(
    "hardtanh",
    statics=("min_val", "max_val"),
    implementation=formula(
        lambda xp, x, *, min_val, max_val: xp.bounded(x, min_val, max_val), numbers=("min_val", "max_val")
    ),
    dx=lambda xp, g, x, min_val, max_val: xp.hardtanh_back(g, x, low=min_val, high=max_val),
)
hardtanh_back = _gate("hardtanh", _outside)  # unlike clamp at the bounds
softshrink = elementwise(
    "softshrink",
    statics=("lambd",),
    implementation=formula(lambda xp, x, *, lambd: x - xp.bounded(x, -lambd, lambd), numbers=("lambd",)),
    dx=lambda xp, g, x, lambd: xp.softshrink_back(g, x, low=-lambd, high=lambd),
)
softshrink_back = _gate("softshrink", _within)
hardshrink = elementwise(
    "hardshrink",
    statics=("lambd",),
    implementation=formula(lambda xp, x, *, lambd: xp.where(_within(xp, x, -lambd, lambd), 0, x), numbers=("lambd",)),
    dx=lambda xp, g, x, lambd: xp.hardshrink_back(g, x, low=-lambd, high=lambd),
)
hardshrink_back = _gate("hardshrink", _within)
threshold = elementwise(
    "threshold",
    statics=("threshold", "value"),
    implementation=formula(
        lambda xp, x, *, threshold, value: xp.where(x <= threshold, value, x).astype(x.dtype, copy=False),
        numbers=("threshold", "value"),
    ),
    dx=lambda xp, g, x, threshold: xp.threshold_back(g, x, low=-math.inf, high=threshold),
)
threshold_back = _gate("threshold", _within)
log_sigmoid = e.log_sigmoid


# ---- gated linear units: one half of a dimension times the sigmoid of the other ----
def _halves(x, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    return x[(*lead, slice(middle))], x[(*lead, slice(middle, None))]


@formula
def _gated(xp, first, second):
    return first / (xp.exp(-second) + 1)


@formula
def _gated_back(xp, g, first, second):
    gate = 1 / (xp.exp(-second) + 1)
    passed = g * gate
    return passed, (1 - gate) * passed * first


@fused("GluBackward0", reads_result=False, shows="dim=axis self", widens=False)
def glu(xp, x, *, axis):
    """Compute a sigmoid(b) of the two halves of an axis."""
    return _gated(xp, *_halves(x, axis)), None


@glu.backward
def glu_backward(xp, g, needed, residuals, x, *, axis):
    if x.size >= 2 * NATIVE and xp is numpy_namespace:
        out = np.empty_like(x, order="C")
        if (run := _gated_back.repeated(_halves(out, axis), g, *_halves(x, axis), apart=0)) is not None:
            run(0, 1)
            return (out,)
    return (xp.module.concatenate(_gated_back(xp, g, *_halves(x, axis)), axis),)


@glu.decomposition
def glu_parts(xp, x, *, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    first = xp.getitem(x, index=(*lead, slice(0, middle)))
    second = xp.getitem(x, index=(*lead, slice(middle, 2 * middle)))
    return first * xp.sigmoid(second)
