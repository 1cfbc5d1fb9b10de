"""Layer and RMS normalisation: every row is brought to variance (or mean square) 1, then scaled and shifted by column.

The variance is that of the distances from the mean: a mean of squares less a squared mean would lose all digits of numbers far from
0. There the mean itself is rounded coarsely, so that what is left of it in the distances is taken off as well.
"""

from __future__ import annotations

import math

import numpy as np

from .._core import passes
from .._core.fused import fused
from .._core.shown import in_memory, residual, saved_array
from .._native.program import formula
from .._thresholds import NATIVE

NEAR = 16  # variances: a mean whose square is farther from 0 is rounded so coarsely that its error is taken off as well
WIDE = np.dtype(np.float64)


def dense(module, x, shape):
    """Give an array a shape, in dense memory."""
    return x if x.shape == shape and x.flags.c_contiguous else module.ascontiguousarray(x).reshape(shape)


def given(*arrays):
    """Return the arrays that are not None."""
    return [a for a in arrays if a is not None]


def parameters(affine, weighted):
    """Tell weights and shifts, of which either may be missing, apart again."""
    return affine[0] if weighted else None, affine[-1] if len(affine) > weighted else None


# ---- sums along axes, which stay ----
def total(xp, x, axis, wide=False):
    """Add up; `wide` in float64."""
    if wide:
        return xp.sum(x, axis=axis, keepdims=True, dtype=WIDE)
    if xp.module is np and axis == (1,) and x.ndim == 2:  # BLAS adds in all lanes
        return x.dot(passes.ones(x.shape[1], x.dtype))[:, None]
    return xp.sum(x, axis=axis, keepdims=True)


def total_product(xp, x, y, axis, wide=False):
    """Add the products of two arrays up."""
    if xp.module is np and axis == (1,) and x.ndim == 2 and not wide:
        return np.vecdot(x, y)[:, None]
    return total(xp, x * y, axis, wide)


def _share(xp, sums, count, wide, dtype):
    return xp.astype(sums / count, dtype=dtype) if wide else sums / count


def moments(xp, x, axis, count, wide=False):
    """Return the distances from the mean along axes, what is left of the mean in them (None: nothing), the mean, and the variance."""
    mean = _share(xp, total(xp, x, axis, wide), count, wide, x.dtype)
    away = x - mean
    variance = _share(xp, total_product(xp, away, away, axis, wide), count, wide, x.dtype)
    if xp.module is np and not np.count_nonzero(mean * mean > variance * passes.number(np, NEAR, x.dtype)):
        return away, None, mean, variance
    wrong = _share(xp, total(xp, away, axis, wide), count, wide, x.dtype)
    return away, wrong, mean + wrong, variance - wrong * wrong


def scaled(xp, away, wrong, scale, weight, bias):
    """Return (away - wrong) * scale * weight + bias, on arrays in the memory of `away`; all but the scale may be None."""
    factor = scale if weight is None else scale * weight
    if xp.module is None and bias is not None:  # in a kernel each product is added as it is
        return xp.fma(away, factor, bias if wrong is None else xp.fma(-wrong, factor, bias))
    shift = bias
    if wrong is not None:
        shift = -wrong * factor if bias is None else bias - wrong * factor
    away *= factor
    if shift is not None:
        away += shift
    return away


# ---- rows of a matrix ----
@formula(numbers=("count", "eps"), wide=(1, 2))
def normalise(xp, x, *affine, axis, count, eps, weighted, wide=False):
    """Return normalised numbers, scaled and shifted, mean and 1 / deviation; `affine` are the weights, if any, and the shifts, if any."""
    away, wrong, mean, variance = moments(xp, x, axis, count, wide)
    scale = passes.number(xp.module, 1, x.dtype) / xp.sqrt(variance + eps)
    return scaled(xp, away, wrong, scale, *parameters(affine, weighted)), mean, scale


@formula(numbers=("count", "eps"), wide=(1,))
def divide_by_size(xp, x, *weight, count, eps):
    """Return numbers divided by the root of their mean square, and scaled; and 1 / that root."""
    scale = 1 / xp.sqrt(total_product(xp, x, x, (1,)) / count + eps)
    out = x * scale
    return out * weight[0] if weight else out, scale


def _weighted(xp, x, weight):
    """Add the columns of a matrix up, each times its weight, if any."""
    if weight is None:
        return total(xp, x, (1,))
    return x.dot(weight)[:, None] if xp.module is np else total(xp, x * weight, (1,))


def _down(xp, x):
    """Add the rows of a matrix up."""
    return passes.ones(len(x), x.dtype).dot(x) if xp.module is np else xp.sum(x, axis=(0,), keepdims=True)


def _rows_back(xp, g, x, scale, *rest, count, centred, needed):
    """Return those gradients of rows, column weights and column shifts that are needed; `rest`: means if centred, weights if any."""
    weight = rest[-1] if len(rest) > centred else None
    away = x - rest[0] if centred else x
    products = g * away if needed[0] or needed[1] else None
    found = []
    if needed[0]:
        # dx = s (g w - average(g w) - away s^2 average(g w away)); without a mean there is no average of g w
        out = away * (_weighted(xp, products, weight) * scale * (scale / count))
        if centred:
            out += _weighted(xp, g, weight) / count
        out = (g if weight is None else g * weight) - out
        out *= scale
        found.append(out)
    if needed[1]:
        found.append(scale[:, 0].dot(products) if xp.module is np else _down(xp, products * scale))
    if needed[2]:
        found.append(_down(xp, g))
    return tuple(found)


rows_back, columns_back = (formula(numbers=("count",), wide=wide)(_rows_back) for wide in ((1, 2), (0, 1)))


def _matrix_back(xp, g, needed, mean, scale, x, weight, ndim):
    """Return the gradients of an array whose last axes are rows, of their weights and of their shifts."""
    shape, inner = _as_rows(x, ndim), x.shape[x.ndim - ndim :]
    g, rows = dense(xp.module, g, shape), dense(xp.module, x, shape)
    back = (rows_back if needed[0] else columns_back).of_size(rows)
    rest = given(mean, _flat(weight))
    count = _number(xp, shape[1], x.dtype)
    found = iter(back(xp, g, rows, scale, *rest, count=count, centred=mean is not None, needed=needed))
    shapes = x.shape, inner, inner
    return [dense(xp.module, next(found), s) if need else None for need, s in zip(needed, shapes, strict=True)]


# ---- a single row: numbers instead of columns ----
def _normalise_row(x, weight, bias, eps):
    width = x.size
    mean = x.dot(passes.ones(width, x.dtype)) / width
    out = x - mean
    variance = out.dot(out) / width
    if mean * mean > NEAR * variance:
        wrong = out.dot(passes.ones(width, x.dtype)) / width
        out -= wrong
        mean += wrong
        variance -= wrong * wrong
    scale = 1 / math.sqrt(variance + eps)
    out *= scale
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, (mean, scale)


def _normalise_row_back(g, needed, residuals, x, weight):
    mean, scale = residuals
    width = x.size
    normal = x - mean
    normal *= scale
    dweight = g * normal if needed[1] else None
    if not needed[0]:
        return None, dweight, g
    out = g if weight is None else g * weight
    level = out.dot(passes.ones(width, x.dtype)) / width
    normal *= out.dot(normal) / width
    normal += level
    out = out - normal
    out *= scale
    return out, dweight, g


def _is_row(x, ndim):
    return x.ndim == ndim == 1 and type(x) is np.ndarray and x.dtype.itemsize > 2 and 0 < x.size < NATIVE


# ---- layer_norm ----
def _number(xp, value, dtype):
    """Return a number as NumPy takes it in half the time, but for half precision, which is computed in float32."""
    return passes.number(xp.module, value, dtype) if dtype.itemsize > 2 else value


def _flat(parameter):
    return parameter if parameter is None or parameter.ndim == 1 else parameter.reshape(-1)


def _as_rows(x, ndim):
    """Return how an array lies as a matrix whose rows are its last axes."""
    if x.ndim == 2 and ndim == 1:
        return x.shape
    kept = x.ndim - ndim
    return math.prod(x.shape[:kept]), math.prod(x.shape[kept:])


def _of_rows(node):
    """Return the shape of what there is one of for each row."""
    shape, ndim = tuple(saved_array(node, "x").shape), node.params["ndim"]
    return (*shape[: len(shape) - ndim], *(1,) * ndim)


def _inner_shape(node):
    shape = tuple(saved_array(node, "x").shape)
    return shape[len(shape) - node.params["ndim"] :]


@fused("NativeLayerNormBackward0", takes_halves=True)
def layer_norm(xp, x, weight, bias, *, ndim, eps):
    """Normalise over the last `ndim` axes."""
    if _is_row(x, ndim):
        return _normalise_row(x, weight, bias, eps)
    rows = dense(xp.module, x, _as_rows(x, ndim))
    affine = given(_flat(weight), _flat(bias))
    count, eps = _number(xp, rows.shape[1], x.dtype), _number(xp, eps, x.dtype)
    run = normalise.of_size(rows)
    out, mean, scale = run(xp, rows, *affine, axis=(1,), count=count, eps=eps, weighted=weight is not None)
    return dense(xp.module, out, x.shape), (mean, scale)


layer_norm.shows(
    "bias input=x weight",
    normalized_shape=_inner_shape,
    result1=residual(0, _of_rows),
    result2=residual(1, _of_rows),
)


@layer_norm.backward
def layer_norm_back(xp, g, needed, residuals, x, weight, bias, *, ndim, eps):
    if _is_row(x, ndim):
        return _normalise_row_back(g, needed, residuals, x, weight)
    return _matrix_back(xp, g, needed, *residuals, x, weight, ndim)


@layer_norm.decomposition
def layer_norm_parts(xp, x, weight, bias, *, ndim, eps):
    rank = len(x.shape)
    out = normal(xp, x, tuple(range(rank - ndim, rank)), eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def normal(xp, x, axis, eps):
    """Give an array mean 0 and variance 1 along axes."""
    variance = xp.var(x, axis=axis, correction=0, keepdims=True)
    return (x - xp.mean(x, axis=axis, keepdims=True)) * xp.rsqrt(variance + eps)


# ---- rms_norm ----
@fused("MulBackward0", takes_halves=True)
def rms_norm(xp, x, weight, *, ndim, eps):
    """Divide by the root of the mean square over the last `ndim` axes."""
    rows = dense(xp.module, x, _as_rows(x, ndim))
    out, scale = divide_by_size(xp, rows, *given(_flat(weight)), count=rows.shape[1], eps=eps)
    return out.reshape(x.shape), (None, scale)


rms_norm.shows(
    "other=weight", self=lambda node: saved_array(node, "x") * in_memory(node._kept()[1]).reshape(_of_rows(node))
)


@rms_norm.backward
def rms_norm_back(xp, g, needed, residuals, x, weight, *, ndim, eps):
    return _matrix_back(xp, g, (*needed, False), *residuals, x, weight, ndim)[:2]


@rms_norm.decomposition
def rms_norm_parts(xp, x, weight, *, ndim, eps):
    rank = len(x.shape)
    square = xp.mean(x * x, axis=tuple(range(rank - ndim, rank)), keepdims=True)
    out = x * xp.rsqrt(square + eps)
    return out if weight is None else out * weight
