"""Normalisation by channel: batch_norm and group_norm of arrays (samples, channels, ...).

A plane is what one sample has in one channel. batch_norm averages over samples and planes, group_norm over the planes of a group.
Long sums are float64: float32 takes a third of the time, and is added up in 32 lanes, or in one for each channel of (samples, channels).
"""

from __future__ import annotations

import math

import numpy as np

from .._core.fused import fused
from .._core.shown import residual, saved_array
from .._native.program import formula
from .normalization import WIDE, dense, given, moments, normal, normalise, parameters, scaled, total, total_product

SINGLE = np.dtype(np.float32)
LONG, LONG_LANE = (
    1 << 17,
    1 << 12,
)  # numbers of a sum, in 32 lanes and in one, from which it is float64: below, 1e-6 is lost at most
SHORT = 128  # numbers of a plane below which weights are repeated for each of them, so that a group is one row


def _planes(module, x):
    """Return a dense array (samples, channels, plane)."""
    return dense(module, x, (*x.shape[:2], math.prod(x.shape[2:])))


def _is_long(x):
    """Tell whether sums over samples and planes are long."""
    return x.size // x.shape[1] >= (LONG if x.ndim > 2 else LONG_LANE)


def _beside(vector):
    """Put a number for each channel beside planes; None stays."""
    return None if vector is None else vector.reshape(-1, 1)


# ---- batch_norm ----
def _coarse(xp, mean, variance, number, eps, half):
    """Round mean, variance and 1 / deviation where torch does; in bfloat16 that is the sum behind the variance, too."""

    def rounded(part):
        return xp.astype(xp.astype(part, dtype=half), dtype=part.dtype)

    fine = variance
    if half.kind != "f":
        variance = rounded(variance * number) / number
        fine = rounded(variance)
    return rounded(mean), variance, rounded(xp.rsqrt(fine + eps))


@formula(numbers=("count", "eps"), wide=(1, 2, 3, 4))
def _over_samples(xp, x, *affine, count, eps, weighted, half, wide):
    """Return normalised planes, the means and 1 / deviations behind them; and means and variances before they were rounded, if they are."""
    away, wrong, middle, variance = moments(xp, x, (0, 2), count, wide)
    mean = middle
    if half is None:
        scale = 1 / xp.sqrt(variance + eps)
    else:
        mean, variance, scale = _coarse(xp, middle, variance, count, eps, half)
        wrong = mean - middle if wrong is None else wrong + (mean - middle)
    return scaled(xp, away, wrong, scale, *parameters(affine, weighted)), mean, scale, middle, variance


@fused("NativeBatchNormBackward0", outputs=3, widens=False, unread=("bias",))
def batch_norm(xp, x, weight, bias, *, eps, half, rounds):
    """Normalise each channel over samples and positions: also its mean and variance, which are never in half precision.

    `half` is the dtype of x where that is half precision; then `rounds` says that mean and deviation are rounded to it, as
    torch does where the parameters are in half precision as well.
    """
    if not x.size:
        nothing = xp.module.zeros(x.shape[1], x.dtype if half is None else SINGLE)
        return (x.copy(), nothing, nothing), (nothing, nothing)
    planes = _planes(xp.module, x)
    affine, count = given(_beside(weight), _beside(bias)), x.size // x.shape[1]
    rounded = half if rounds else None
    out, mean, scale, middle, variance = _over_samples(
        xp, planes, *affine, count=count, eps=eps, weighted=weight is not None, half=rounded, wide=_is_long(x)
    )
    return (out.reshape(x.shape), middle.reshape(-1), variance.reshape(-1)), (mean, scale)


def _of_channels(node):
    return (saved_array(node, "x").shape[1],)


batch_norm.shows(
    "eps input=x training=True weight", result1=residual(0, _of_channels), result2=residual(1, _of_channels)
)


@formula(numbers=("count",), wide=(1, 2))
def _samples_back(xp, g, x, mean, scale, *weight, count, averaged, wide):
    """Return the gradients of planes, weights and shifts; `averaged` says whether mean and deviation are those of x."""
    away = x - mean
    level, slope = total(xp, g, (0, 2), wide), total_product(xp, g, away, (0, 2), wide)
    steepness = scale * weight[0] if weight else scale
    out = g
    if averaged:
        tilt = xp.astype(slope / count, dtype=x.dtype) * scale * scale
        out = g - away * tilt - xp.astype(level / count, dtype=x.dtype)
    return out * steepness, xp.astype(slope, dtype=x.dtype) * scale, xp.astype(level, dtype=x.dtype)


@formula
def _scaled_gradient(xp, g, steepness):
    return g * steepness


@batch_norm.backward
def batch_norm_back(xp, g, needed, residuals, x, weight, bias, *, eps, half, rounds):
    return _batch_norm_back(xp, g[0], needed, residuals, x, weight, averaged=True)


def _batch_norm_back(xp, g, needed, residuals, x, weight, averaged):
    mean, scale = residuals
    if not x.size:
        return xp.module.zeros_like(x), *(xp.module.zeros_like(scale, dtype=x.dtype) for _ in range(2))
    gradient, factors = _planes(xp.module, g), given(_beside(weight))
    if averaged or needed[1] or needed[2]:
        facts = {"count": x.size // x.shape[1], "averaged": averaged, "wide": _is_long(x)}
        dx, dweight, dbias = _samples_back(xp, gradient, _planes(xp.module, x), mean, scale, *factors, **facts)
        return dx.reshape(x.shape), dweight.reshape(-1), dbias.reshape(-1)
    return _scaled_gradient(xp, gradient, scale * factors[0] if factors else scale).reshape(x.shape), None, None


@batch_norm.decomposition
def batch_norm_parts(xp, x, weight, bias, *, eps, half, rounds):
    if half is not None:
        x = xp.astype(x, dtype=SINGLE)
    axis = (0, *range(2, len(x.shape)))
    variance = xp.var(x, axis=axis, correction=0, keepdims=True)
    mean = xp.mean(x, axis=axis, keepdims=True)
    middle = mean
    if rounds:
        middle, variance, scale = _coarse(xp, mean, variance, math.prod(x.shape[a] for a in axis), eps, half)
    else:
        scale = xp.rsqrt(variance + eps)
    out = affine(xp, (x - middle) * scale, weight, bias)
    out = out if half is None else xp.astype(out, dtype=half)
    return out, xp.reshape(mean, shape=(x.shape[1],)), xp.reshape(variance, shape=(x.shape[1],))


def affine(xp, x, weight, bias):
    """Scale and shift each channel of (samples, channels, ...)."""
    shape = (x.shape[1], *(1,) * (len(x.shape) - 2))
    out = x if weight is None else x * xp.reshape(weight, shape=shape)
    return out if bias is None else out + xp.reshape(bias, shape=shape)


# ---- batch_norm with mean and variance given ----
@formula
def _moved(xp, x, mean, factor, *shift):
    return scaled(xp, x - mean, None, factor, None, *shift or (None,))


@fused("NativeBatchNormBackward0", takes_halves=True, unread=("bias",))
def batch_norm_fixed(xp, x, weight, bias, mean, variance, *, eps):
    """Scale and shift each channel by a mean and a variance that are constants."""
    dtype = x.dtype if x.dtype.itemsize > 2 else SINGLE
    scale = 1 / xp.module.sqrt(variance.astype(WIDE) + eps)
    factor = scale if weight is None else scale * weight.astype(WIDE)
    mean, scale, factor = (_beside(part.astype(dtype)) for part in (mean, scale, factor))
    out = _moved(xp, _planes(xp.module, x), mean, factor, *given(_beside(bias)))
    return out.reshape(x.shape), (mean, scale)


def _nothing(node):
    return np.empty(0, np.float32)


batch_norm_fixed.shows(
    "eps input=x running_mean=mean running_var=variance training=False weight", result1=_nothing, result2=_nothing
)


@batch_norm_fixed.backward
def batch_norm_fixed_back(xp, g, needed, residuals, x, weight, bias, mean, variance, *, eps):
    return (*_batch_norm_back(xp, g, needed, residuals, x, weight, averaged=False), None, None)


@batch_norm_fixed.decomposition
def batch_norm_fixed_parts(xp, x, weight, bias, mean, variance, *, eps):
    shape = (x.shape[1], *(1,) * (len(x.shape) - 2))
    normal = (x - xp.reshape(mean, shape=shape)) * xp.rsqrt(xp.reshape(variance, shape=shape) + eps)
    return affine(xp, normal, weight, bias)


# ---- group_norm ----
def _by_group(module, x, groups, *vectors):
    """Return an array as (samples, groups, channels of a group, plane), and vectors by channel beside it; None stays.

    Short planes of a group become one row, with numbers that are repeated for each of them.
    """
    samples, channels = x.shape[:2]
    plane = math.prod(x.shape[2:])
    if plane >= SHORT:
        shape, own = (samples, groups, channels // groups, plane), (groups, channels // groups, 1)
    else:
        shape, own = (samples, groups, 1, channels // groups * plane), (groups, 1, channels // groups * plane)
        vectors = [None if v is None else module.repeat(v, plane) for v in vectors]
    return dense(module, x, shape), *(None if v is None else v.reshape(own) for v in vectors)


@fused("NativeGroupNormBackward0", takes_halves=True, unread=("bias",))
def group_norm(xp, x, weight, bias, *, groups, eps):
    """Normalise each group of channels of each sample."""
    apart, *affine = _by_group(xp.module, x, groups, weight, bias)
    count = math.prod(apart.shape[2:])
    out, mean, scale = normalise(
        xp, apart, *given(*affine), axis=(2, 3), count=count, eps=eps, weighted=weight is not None, wide=count >= LONG
    )
    return out.reshape(x.shape), (mean, scale)


def _of_groups(node):
    return saved_array(node, "x").shape[0], node.params["groups"]


group_norm.shows(
    "eps group=groups input=x weight",
    N=lambda node: saved_array(node, "x").shape[0],
    C=lambda node: saved_array(node, "x").shape[1],
    HxW=lambda node: math.prod(saved_array(node, "x").shape[2:]),
    result1=residual(0, _of_groups),
    result2=residual(1, _of_groups),
)


@formula(wide=(0, 1))
def _sums_of_planes(xp, g, x, mean):
    return total(xp, g, (3,)), total_product(xp, g, x - mean, (3,))


@formula
def _groups_back(xp, g, x, mean, steepness, tilt, level):
    return g * steepness - (x - mean) * tilt - level


@group_norm.backward
def group_norm_back(xp, g, needed, residuals, x, weight, bias, *, groups, eps):
    mean, scale = residuals
    shape = x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:])
    gradient, apart = dense(xp.module, g, shape), dense(xp.module, x, shape)
    level, slope = _sums_of_planes(xp, gradient, apart, mean)
    dx = dweight = dbias = None
    if needed[1]:
        dweight = (slope * scale).sum(0).reshape(-1)
    if needed[2]:
        dbias = level.sum(0).reshape(-1)
    if needed[0]:
        steepness = scale
        if weight is not None:
            factors = weight.reshape(groups, -1, 1).astype(level.dtype)
            level, slope, steepness = level * factors, slope * factors, scale * factors
        share = scale / (shape[2] * shape[3])
        tilt = slope.sum(2, keepdims=True) * share * scale * scale
        dx = _groups_back(xp, gradient, apart, mean, steepness, tilt, level.sum(2, keepdims=True) * share).reshape(
            x.shape
        )
    return dx, dweight, dbias


@group_norm.decomposition
def group_norm_parts(xp, x, weight, bias, *, groups, eps):
    shape = tuple(x.shape)
    axes = tuple(range(2, len(shape) + 1))
    apart = xp.reshape(x, shape=(shape[0], groups, shape[1] // groups, *shape[2:]))
    return affine(xp, xp.reshape(normal(xp, apart, axes, eps), shape=shape), weight, bias)
