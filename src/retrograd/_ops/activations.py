"""Activation functions and their backwards, which are operations of their own, as torch's: fewer passes over memory.

Note [Blocks]
Every formula is written once, on memory: it reads its arrays and writes `out`. Small arrays go through it whole, large ones in
blocks that stay in the processor's cache, so that a formula of ten steps reads and writes main memory once.
The backward of f is `f_back(g, x) = g f'(x)`: linear in g, with the slope `g f''(x)` in x, which is written in words of `xp`.
"""

from __future__ import annotations

import math

from .._core import kernels, parallel
from .._core.fused import fused
from .._core.kernels import BLOCK, POWER, POWER_SCALE, is_large, normal_odds
from .._core.numpy_namespace import HALVES, numpy_namespace
from .._core.passes import LARGE, number
from .._core.primitive import elementwise
from . import elementwise as e

numpy = numpy_namespace.module


def _room(module, arrays):
    """Return memory for the result, in the order of the last array's."""
    x = arrays[-1]
    if all([a.shape == x.shape for a in arrays]):
        return module.empty(x.shape, x.dtype) if x.flags.c_contiguous else module.empty_like(x)
    return module.empty(module.broadcast_shapes(*[a.shape for a in arrays]), x.dtype)


def blockwise(block):
    """Make an implementation of `block(xp, *arrays, out, **params)`; half precision is computed in float32."""

    def plain(xp, *arrays, **params):
        x = arrays[-1]
        if 0 < x.size <= BLOCK and x.ndim and x.flags.c_contiguous and arrays[0].shape == x.shape:  # most of the time
            out = xp.module.empty(x.shape, x.dtype)
            block(xp, *arrays, out, **params)
            return out
        if not x.ndim:  # what formulas write into has to be memory, which a number is not
            if all([not a.ndim for a in arrays]):
                return plain(xp, *[a.reshape(1) for a in arrays], **params).reshape(())
            arrays = [a if a.ndim else a.reshape(1) for a in arrays]
        elif x.size > BLOCK and type(x) is numpy.ndarray and all([_is_dense(a, x) for a in arrays]):
            out = numpy.empty(x.shape, x.dtype)
            kernels.blockwise(lambda *parts: block(xp, *parts, **params), [a.reshape(-1) for a in (*arrays, out)])
            return out
        out = _room(xp.module, arrays)
        block(xp, *arrays, out, **params)
        return out

    def called(xp, *arrays, **params):
        dtype = arrays[-1].dtype
        if dtype.itemsize == 2 and dtype in HALVES:
            return plain(xp, *[a.astype("float32") for a in arrays], **params).astype(dtype)
        return plain(xp, *arrays, **params)

    called.plain = plain  # for those who know that they have arrays of full precision
    return called


_zero_blocks: dict = {}


def _zeros(m, x):
    """Return zeros to compare with: many that are kept, because NumPy's `maximum` with a number takes three times as long."""
    if m is not numpy or not LARGE <= x.size <= parallel.BLOCK:
        return number(m, 0, x.dtype)
    found = _zero_blocks.get(x.dtype)
    if found is None:
        found = _zero_blocks[x.dtype] = numpy.zeros(parallel.BLOCK, x.dtype)
    return found[: x.size].reshape(x.shape)


def _is_dense(array, x):
    return array.shape == x.shape and array.dtype is x.dtype and array.flags.c_contiguous


def _choose(xp, condition, out, other):
    """Write into `out` what stands in `other` where a condition is false."""
    out[...] = xp.where(condition, out, other)


# ---- silu ----
def _sigmoid_into(m, x, out):
    one = number(m, 1, x.dtype)
    m.negative(x, out)
    m.exp(out, out)
    m.add(out, one, out)
    m.divide(one, out, out)


@blockwise
def _silu(xp, x, out):
    m = xp.module
    m.negative(x, out)
    m.exp(out, out)
    m.add(out, number(m, 1, x.dtype), out)
    m.divide(x, out, out)


@blockwise
def _silu_back(xp, g, x, out):
    m = xp.module
    _sigmoid_into(m, x, out)
    one = number(m, 1, x.dtype)
    slope = one - out
    slope *= x
    slope += one
    out *= slope
    out *= g


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
def _mish_parts(m, x):
    power = m.exp(m.minimum(x, x.dtype.type(20)))
    n = power + 2
    n *= power
    return power, n


@blockwise
def _mish(xp, x, out):
    _, n = _mish_parts(xp.module, x)
    xp.module.divide(n, n + 2, out)
    out *= x


@blockwise
def _mish_back(xp, g, x, out):
    m = xp.module
    power, n = _mish_parts(m, x)
    below = n + 2
    n /= below
    m.divide(power, below, out)
    power += 1
    power *= 4
    power /= below
    out *= power
    out *= m.minimum(x, x.dtype.type(20))  # beyond, the power stays, and a large x would bring back what has vanished
    out += n
    out += x * x.dtype.type(0)  # at infinity NaN, as torch's
    out *= g


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
HALF_ROOT, ROOT, DENSITY = math.sqrt(0.5), math.sqrt(2 / math.pi), 1 / math.sqrt(2 * math.pi)
CUBIC = 0.044715


def _inner(m, x, square, factor, out):
    """Write `factor` sqrt(2 / pi) (x + CUBIC x^3), given the square of x, which may lie in `out`."""
    m.multiply(square, number(m, factor * ROOT * CUBIC, x.dtype), out)
    out += number(m, factor * ROOT, x.dtype)
    out *= x


@blockwise
def _gelu(xp, x, out, *, approximate):
    m = xp.module
    if approximate == "tanh":
        # (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 y)), which loses no digits below 0
        m.multiply(x, x, out)
        _inner(m, x, out, -2 * POWER_SCALE, out)
        getattr(m, POWER)(out, out)
        out += number(m, 1, x.dtype)
        m.divide(x, out, out)
    elif is_large(x):
        m.divide(x, normal_odds(x, x * x), out)
    else:
        m.multiply(x, number(m, HALF_ROOT, x.dtype), out)
        out[...] = xp.erf(out)
        out += number(m, 1, x.dtype)
        out *= x
        out *= number(m, 0.5, x.dtype)


@blockwise
def _gelu_back(xp, g, x, out, *, approximate):
    m = xp.module
    one = number(m, 1, x.dtype)
    slope = x * x
    if approximate == "tanh":
        _inner(m, x, slope, 1, out)
        t = m.tanh(out, out)
        slope *= number(m, 3 * CUBIC * ROOT, x.dtype)
        slope += number(m, ROOT, x.dtype)
        slope *= x
        flat = t * t  # of the shape of `out`, which is wider than x where there are several gradients
        m.subtract(one, flat, flat)
        flat *= slope
        out += one
        out += flat
        out *= number(m, 0.5, x.dtype)
    else:
        if is_large(x):
            m.divide(one, normal_odds(x, slope), out)
        else:
            m.multiply(x, number(m, HALF_ROOT, x.dtype), out)
            out[...] = xp.erf(out)
            out += one
            out *= number(m, 0.5, x.dtype)
        slope *= number(m, -0.5 * POWER_SCALE, x.dtype)
        getattr(m, POWER)(slope, slope)
        slope *= x
        slope *= number(m, DENSITY, x.dtype)
        out += slope
    out *= g


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
@blockwise
def _elu(xp, x, out, *, alpha, scale, input_scale):
    # exp(y) - 1 = 2 t / (1 - t) with t = tanh(y / 2), which NumPy has in all lanes, and expm1 not
    m = xp.module
    dtype = x.dtype
    zero = _zeros(m, x)
    t = m.minimum(x, zero)
    t *= number(m, input_scale / 2, dtype)
    m.tanh(t, t)
    t /= number(m, 1, dtype) - t
    t *= number(m, 2 * alpha * scale, dtype)
    m.maximum(x, zero, out=out)
    if scale != 1:
        out *= scale
    out += t


@blockwise
def _elu_back(xp, g, x, out, *, alpha, scale, input_scale):
    m = xp.module
    below = alpha * scale * input_scale
    m.fmin(x, _zeros(m, x), out=out)  # NaN has the slope of what is above 0, as in torch
    if input_scale != 1:
        out *= number(m, input_scale, x.dtype)
    m.exp(out, out)
    if below != 1:
        out *= number(m, below, x.dtype)
    if below != scale:
        out += ~(x <= 0) * x.dtype.type(scale - below)
    out *= g


def _elu_dx(xp, g, x, alpha, scale, input_scale):
    return xp.elu_back(g, x, alpha=alpha, scale=scale, input_scale=input_scale)


def _elu_back_dx(xp, g, y, alpha, scale, input_scale):
    return xp.elu_back(g, y, alpha=alpha, scale=scale, input_scale=input_scale)


def _elu_back_dy(xp, t, x, y, alpha, scale, input_scale):
    bent = (alpha * scale * input_scale * input_scale) * xp.exp(xp.where(xp.greater(y, 0), 0, y) * input_scale)
    return t * x * xp.where(xp.greater(y, 0), 0, bent)


ELU = ("alpha", "scale", "input_scale")
elu = elementwise("elu", statics=ELU, implementation=_elu, dx=_elu_dx, shows={"CeluBackward0": "alpha self"})
elu_back = elementwise(
    "elu_back", torch="elu_backward", statics=ELU, implementation=_elu_back, dx=_elu_back_dx, dy=_elu_back_dy
)


# ---- softplus: log(1 + exp(beta x)) / beta, and x itself beyond a threshold ----
SURE = 17  # from which on 1 + exp(-x) is 1 in float32, so that a threshold beyond it need not be looked at


@blockwise
def _soft(xp, x, out, *, beta, threshold):
    m = xp.module
    scaled = x * beta
    if threshold >= SURE and is_large(x):
        m.abs(scaled, out)
        m.negative(out, out)
        m.exp(out, out)
        m.log1p(out, out)
        out += m.maximum(scaled, _zeros(m, x), out=scaled)
        if beta != 1:
            out /= beta
        return
    m.minimum(scaled, 88, out=out)
    m.exp(out, out)
    m.log1p(out, out)
    if beta != 1:
        out /= beta
    _choose(xp, scaled <= threshold, out, x)


@blockwise
def _soft_back(xp, g, x, out, *, beta, threshold):
    scaled = x * beta
    _sigmoid_into(xp.module, scaled, out)
    if threshold < SURE or not is_large(x):
        _choose(xp, ~(scaled > threshold), out, 1.0)
    out *= g


def _soft_curvature(xp, x, beta, threshold):
    s = xp.sigmoid(x * beta)
    return xp.where(xp.greater(x * beta, threshold), 0, s * (1 - s) * beta)


SOFT = ("beta", "threshold")
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
@blockwise
def _leaky(xp, x, out, *, negative_slope):
    m = xp.module
    m.multiply(x, number(m, negative_slope, x.dtype), out)
    if 0 <= negative_slope <= 1:
        m.maximum(x, out, out=out)
    else:
        _choose(xp, ~(x > 0), out, x)


@blockwise
def _leaky_back(xp, g, x, out, *, negative_slope):
    # NaN has the slope of what is below 0, as in torch
    m = xp.module
    if 0 <= negative_slope <= 1 and x.size >= LARGE:
        out[...] = m.greater(x, number(m, 0, x.dtype))
        out *= number(m, 1 - negative_slope, x.dtype)
        out += number(m, negative_slope, x.dtype)  # 1 - s + s is 1, rounded or not
        out *= g
        return
    m.multiply(g, number(m, negative_slope, x.dtype), out)
    if m is numpy and x.size < 64:
        numpy.copyto(out, g, where=numpy.greater(x, number(m, 0, x.dtype)))
    else:
        _choose(xp, ~(x > 0), out, g)


leaky_relu = elementwise(
    "leaky_relu",
    statics=("negative_slope",),
    implementation=_leaky,
    dx=lambda xp, g, x, negative_slope: xp.leaky_relu_back(g, x, negative_slope=negative_slope),
)
leaky_relu_back = elementwise(
    "leaky_relu_back",
    torch="leaky_relu_backward",
    statics=("negative_slope",),
    implementation=_leaky_back,
    dx=lambda xp, g, y, negative_slope: xp.leaky_relu_back(g, y, negative_slope=negative_slope),
    dy=lambda xp, t: xp.zeros_like(t),
)
prelu = elementwise(
    "prelu",
    torch="_prelu_kernel",
    implementation=lambda xp, x, y: xp.where(x > 0, x, y * x).astype(x.dtype, copy=False),
    dx=lambda xp, g, x, y: xp.where(xp.greater(x, 0), g, g * y),
    dy=lambda xp, g, x: xp.where(xp.greater(x, 0), 0, g * x),
    shows="self weight=y",
)
rrelu = elementwise(
    "rrelu",
    torch="rrelu_with_noise",
    inputs=("x", "y"),
    statics=("lower", "upper", "training"),
    implementation=lambda xp, x, y, *, lower, upper, training: x * y,
    dx=lambda xp, g, y: g * y,
    shows="noise=y",
)


# ---- straight pieces ----
def _scaled_inside(xp, g, x, low, high, factor):
    """Multiply by a number strictly between two bounds; nothing passes elsewhere, NaN neither."""
    return xp.where(xp.logical_and(xp.greater(x, low), xp.less(x, high)), g * factor, 0)


hardsigmoid = elementwise(
    "hardsigmoid",
    implementation=blockwise(lambda xp, x, out: _ramp(xp, x, out)),
    dx=lambda xp, g, x: _scaled_inside(xp, g, x, -3, 3, 1 / 6),
)


def _ramp(xp, x, out):
    """Write min(max(x + 3, 0), 6) / 6."""
    xp.module.add(x, 3, out)
    xp.module.clip(out, 0, 6, out=out)
    out /= 6


@blockwise
def _hardswish(xp, x, out):
    xp.module.add(x, 3, out)
    xp.module.clip(out, 0, 6, out=out)
    out *= x
    out /= 6


hardswish = elementwise("hardswish", implementation=_hardswish, dx=lambda xp, g, x: _hardswish_dx(xp, g, x))


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

    @blockwise
    def implementation(xp, g, x, out, *, low, high):
        out[...] = xp.where(stopped(xp, x, low, high), g.dtype.type(0), g)

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
    implementation=lambda xp, x, *, min_val, max_val: xp.bounded(x, min_val, max_val),
    dx=lambda xp, g, x, min_val, max_val: xp.hardtanh_back(g, x, low=min_val, high=max_val),
)
hardtanh_back = _gate("hardtanh", _outside)  # unlike clamp at the bounds
softshrink = elementwise(
    "softshrink",
    statics=("lambd",),
    implementation=blockwise(lambda xp, x, out, *, lambd: xp.module.subtract(x, xp.bounded(x, -lambd, lambd), out)),
    dx=lambda xp, g, x, lambd: xp.softshrink_back(g, x, low=-lambd, high=lambd),
)
softshrink_back = _gate("softshrink", _within)
hardshrink = elementwise(
    "hardshrink",
    statics=("lambd",),
    implementation=lambda xp, x, *, lambd: xp.where(_within(xp, x, -lambd, lambd), 0, x).astype(x.dtype, copy=False),
    dx=lambda xp, g, x, lambd: xp.hardshrink_back(g, x, low=-lambd, high=lambd),
)
hardshrink_back = _gate("hardshrink", _within)
threshold = elementwise(
    "threshold",
    statics=("threshold", "value"),
    implementation=lambda xp, x, *, threshold, value: xp.where(x <= threshold, x.dtype.type(value), x),
    dx=lambda xp, g, x, threshold: xp.threshold_back(g, x, low=-math.inf, high=threshold),
)
threshold_back = _gate("threshold", _within)
log_sigmoid = e.log_sigmoid


# ---- gated linear units: one half of a dimension times the sigmoid of the other ----
def _halves(x, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    return x[(*lead, slice(middle))], x[(*lead, slice(middle, None))]


@fused("GluBackward0", reads_result=False, shows="dim=axis self")
def glu(xp, x, *, axis):
    """Compute a sigmoid(b) of the two halves of an axis."""
    first, second = _halves(x, axis)
    gate = xp.sigmoid(second)
    return first * gate, gate


@glu.backward
def glu_backward(xp, g, needed, gate, x, *, axis):
    first, _ = _halves(x, axis)
    out = xp.module.empty(x.shape, x.dtype)
    to_first, to_second = _halves(out, axis)
    xp.module.multiply(g, gate, out=to_first)
    xp.module.subtract(1, gate, out=to_second)
    to_second *= to_first
    to_second *= first
    return (out,)


@glu.decomposition
def glu_parts(xp, x, *, axis):
    middle = x.shape[axis] // 2
    lead = (slice(None),) * axis
    first = xp.getitem(x, index=(*lead, slice(0, middle)))
    second = xp.getitem(x, index=(*lead, slice(middle, 2 * middle)))
    return first * xp.sigmoid(second)
