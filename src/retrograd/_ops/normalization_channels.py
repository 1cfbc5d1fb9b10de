"""Normalisation by channel: batch_norm and group_norm of arrays (samples, channels, ...).

Note [Planes]
A plane is what one sample has in one channel. Where planes are long, each is a row of a matrix: its sum and its sum of squares are
BLAS products, combined afterwards (over samples for batch_norm, over the channels of a group for group_norm), and the result is
x * a + b with an `a` and a `b` for each row. Where planes are short, batch_norm takes columns, which go over samples, and
group_norm takes rows that are whole groups.
A sum of squares less a squared mean is exact enough as long as the mean is no larger than the deviation; else distances from the
mean are squared. What rows give is combined in float64.
"""

from __future__ import annotations

import math

import numpy as np

from .._core.fused import fused
from .._core.numpy_namespace import is_half
from .._core.shown import residual, saved_array
from .normalization import (
    NEAR,
    dense,
    dots,
    down,
    is_strip,
    normal,
    normalise_rows,
    normalise_rows_back,
    ones,
    over_strips,
    strips_of,
)

LONG = 32  # elements of a plane from which it is a row
SINGLE, WIDE = np.dtype(np.float32), np.dtype(np.float64)


# ---- planes as rows ----
def _moments(module, x):
    """Return the mean of each row of a matrix, and the sum of squared distances from it, in float64."""
    count, width = x.shape
    one = ones(module, width, x.dtype)
    sums, squares = module.empty((2, count), x.dtype)

    def add_up(k, rows):
        here = x[rows]
        sums[rows] = here @ one
        squares[rows] = dots(module, here, here)

    over_strips(module, add_up, count, width)
    mean = sums / WIDE.type(width)
    distant = squares - mean * sums
    if not (distant < 0.5 * squares).any():
        return mean, distant
    rounded = mean.astype(x.dtype)

    def add_up_distances(k, rows):
        away = x[rows] - rounded[rows, None]
        sums[rows] = away @ one
        squares[rows] = dots(module, away, away)

    over_strips(module, add_up_distances, count, width)
    wrong = sums / WIDE.type(width)
    return rounded + wrong, squares - wrong * sums


def _combined(mean, squares, length, axis):
    """Return mean and variance of equally long rows taken together along an axis."""
    number = mean.shape[axis]
    middle = mean.sum(axis, keepdims=True)
    middle /= number
    away = mean - middle
    away *= away
    away *= length
    away += squares
    total = away.sum(axis)
    total /= length * number
    return middle.squeeze(axis), total


def _are_near(mean, scale):
    """Tell whether means are so few deviations from 0 that they may be taken off after scaling, in one pass less."""
    return bool((abs(mean * scale) <= NEAR).all())


def _columns(module, dtype, shape, *vectors):
    """Give every row one number of each vector; `shape` is that of the rows, to which vectors broadcast. None stays."""
    out = module.empty((len(vectors), *shape), dtype)
    for part, vector in zip(out, vectors, strict=True):
        if vector is not None:
            part[...] = vector
    return [None if v is None else part.reshape(-1, 1) for part, v in zip(out, vectors, strict=True)]


def _scale_rows(module, x, mean, factor, shift):
    """Return (x - mean) * factor + shift, with one of each for every row; a mean of None is 0."""
    out = module.empty_like(x)

    def work(k, rows):
        part = out[rows]
        if mean is None:
            module.multiply(x[rows], factor[rows], out=part)
        else:
            module.subtract(x[rows], mean[rows], out=part)
            part *= factor[rows]
        part += shift[rows]

    over_strips(module, work, *x.shape)
    return out


def _sums_back(module, g, x, mean):
    """Return for each row the sum of g, and that of g * (x - mean); a mean of None is 0."""
    count, width = x.shape
    level, slope = module.empty((2, count), WIDE)
    one = ones(module, width, x.dtype)

    def work(k, rows):
        level[rows] = g[rows] @ one
        slope[rows] = dots(module, g[rows], x[rows] if mean is None else x[rows] - mean[rows])

    over_strips(module, work, count, width)
    return level, slope


def _combine_rows(module, g, x, mean, steepness, slope, level):
    """Return g * steepness - (x - mean) * slope - level, with one of each for every row; a mean of None is 0."""
    out = module.empty_like(x)

    def work(k, rows):
        part = out[rows]
        if mean is None:
            away = x[rows] * slope[rows]
        else:
            away = x[rows] - mean[rows]
            away *= slope[rows]
        away += level[rows]
        module.multiply(g[rows], steepness[rows], out=part)
        part -= away

    over_strips(module, work, *x.shape)
    return out


# ---- planes as parts of rows, whose columns go over samples ----
def _by_channel(sums, channels):
    """Add up the columns of each channel, in float64."""
    sums = sums.astype(WIDE)
    return sums if sums.size == channels else sums.reshape(channels, -1).sum(1)


def _sums_of_columns(module, work, count, width):
    """Add up the vectors that `work(rows)` returns for each strip of rows."""
    if is_strip(module, count, width):
        return work(slice(None))
    found = [None] * strips_of(module, count, width)[0]

    def work_on_strip(k, rows):
        found[k] = work(rows)

    over_strips(module, work_on_strip, count, width)
    return [down(module, module.stack(vectors)) for vectors in zip(*found, strict=True)]


def _moments_of_columns(module, x, channels):
    """Return mean and variance by channel of a matrix (samples, channels * plane), and the distances from the means.

    The mean is rounded for these; the last result is by how much, where that matters.
    """
    count, width = x.shape
    number = count * (width // channels)
    one = ones(module, count, x.dtype)
    mean = _by_channel(one.dot(x), channels)
    mean /= number
    rounded = _repeated(mean, x)
    away = module.empty(x.shape, x.dtype)

    def work(rows):
        part = module.subtract(x[rows], rounded, out=away[rows])
        return (ones(module, len(part), x.dtype).dot(part * part),)

    variance = _by_channel(_sums_of_columns(module, work, count, width)[0], channels)
    variance /= number
    if (mean * mean <= NEAR * NEAR * variance).all():
        return mean, variance, away, None
    wrong = _by_channel(one.dot(away), channels)
    wrong /= number
    variance -= wrong * wrong
    return mean.astype(x.dtype) + wrong, variance, away, wrong


def _repeated(vector, x):
    """Give each column of a matrix the number of its channel, in the matrix's dtype."""
    vector = vector.astype(x.dtype)
    return vector if vector.size == x.shape[1] else vector.repeat(x.shape[1] // vector.size)


def _scale_columns(module, x, factor, shift):
    """Compute x * factor + shift in place, with one of each for every channel; a shift of None is 0."""
    factor, shift = _repeated(factor, x), None if shift is None else _repeated(shift, x)

    def work(k, rows):
        part = x[rows]
        part *= factor
        if shift is not None:
            part += shift

    over_strips(module, work, *x.shape)
    return x


def _columns_back(module, g, needed, x, mean, scale, weight, averaged):
    """Return the gradients of a matrix (samples, channels * plane), of weight and of bias."""
    count, width = x.shape
    channels = mean.size
    rounded = _repeated(mean, x)
    whole = is_strip(module, count, width)
    kept = []

    def add_up(rows):
        away, gradient = x[rows] - rounded, g[rows]
        if whole:
            kept.append(away)
        one = ones(module, len(away), x.dtype)
        return one.dot(gradient), one.dot(away * gradient)

    level, slope = (_by_channel(sums, channels) for sums in _sums_of_columns(module, add_up, count, width))
    dweight = slope * scale
    if not needed[0]:
        return None, dweight, level
    steepness = scale if weight is None else scale * weight
    if not averaged:
        return g * _repeated(steepness, x), dweight, level
    out = module.empty_like(x)
    number = x.size // channels
    tilt = _repeated(steepness * slope * scale * scale / number, x)
    level_here, steep = _repeated(steepness * level / number, x), _repeated(steepness, x)

    def combine(k, rows):
        away = kept.pop() if whole else x[rows] - rounded
        away *= tilt
        away += level_here
        part = module.multiply(g[rows], steep, out=out[rows])
        part -= away

    over_strips(module, combine, count, width)
    return out, dweight, level


# ---- batch_norm ----
def _matrix(module, x):
    """Return an array as a dense matrix whose rows are planes, or samples where planes are short; and which of the two."""
    plane = math.prod(x.shape[2:])
    if plane >= LONG:
        return dense(module, x, (x.shape[0] * x.shape[1], plane)), True
    return dense(module, x, (x.shape[0], x.shape[1] * plane)), False


def _single(array):
    return array if array is None or not is_half(array.dtype) else array.astype(SINGLE)


def _coarse(xp, mean, variance, number, eps, half):
    """Round mean, variance and 1 / deviation where torch does; in bfloat16 that is the sum behind the variance, too."""

    def rounded(part):
        return xp.astype(xp.astype(part, dtype=half), dtype=part.dtype)

    fine = variance
    if half.kind != "f":
        variance = rounded(variance * number) / number
        fine = rounded(variance)
    return rounded(mean), variance, rounded(xp.rsqrt(fine + eps))


@fused("NativeBatchNormBackward0", outputs=3, widens=False, unread=("bias",))
def batch_norm(xp, x, weight, bias, *, eps, half, rounds):
    """Normalise each channel over samples and positions: also its mean and variance, which are never in half precision.

    `half` is the dtype of x where that is half precision; then `rounds` says that mean and deviation are rounded to it, as
    torch does where the parameters are in half precision as well.
    """
    module = xp.module
    if not x.size:
        nothing = module.zeros(x.shape[1], x.dtype if half is None else SINGLE)
        return (x.copy(), nothing, nothing), (nothing, nothing)
    x, weight, bias = _single(x), _single(weight), _single(bias)
    matrix, in_rows = _matrix(module, x)
    channels = x.shape[1]
    if in_rows:
        lines, squares = (part.reshape(x.shape[:2]) for part in _moments(module, matrix))
        mean, variance = _combined(lines, squares, matrix.shape[1], 0)
    else:
        mean, variance, away, wrong = _moments_of_columns(module, matrix, channels)
    middle = mean
    if rounds:
        mean, variance, scale = _coarse(xp, mean, variance, x.size // channels, eps, half)
        wrong = None if in_rows else mean - middle + (0 if wrong is None else wrong)
    else:
        scale = 1 / module.sqrt(variance + eps)
    factor = scale if weight is None else scale * weight
    if in_rows:
        out = _scale_channels(module, matrix, x.shape[:2], mean, scale, factor, 0 if bias is None else bias)
    else:
        shift = bias if wrong is None else (0 if bias is None else bias) - wrong * factor
        out = _scale_columns(module, away, factor, shift)
    out = out.reshape(x.shape)
    statistics = middle.astype(x.dtype), variance.astype(x.dtype)
    return (out if half is None else out.astype(half), *statistics), (mean, scale)


def _scale_channels(module, matrix, shape, mean, scale, factor, shift):
    """Return (x - mean) * factor + shift, with one of each for every channel; `scale` is 1 / deviation."""
    if _are_near(mean, scale):
        mean, shift = None, shift - mean * factor
    return _scale_rows(module, matrix, *_columns(module, matrix.dtype, shape, mean, factor, shift))


def _of_channels(node):
    return (saved_array(node, "x").shape[1],)


batch_norm.shows(
    "eps input=x training=True weight", result1=residual(0, _of_channels), result2=residual(1, _of_channels)
)


@batch_norm.backward
def batch_norm_back(xp, g, needed, residuals, x, weight, bias, *, eps, half, rounds):
    return _batch_norm_back(xp.module, g[0], needed, residuals, x, weight, averaged=True)


def _batch_norm_back(module, g, needed, residuals, x, weight, averaged):
    """Return the gradients; `averaged` says whether mean and deviation are those of x."""
    mean, scale = residuals
    if not x.size:
        return module.zeros_like(x), *(module.zeros_like(scale, dtype=x.dtype) for _ in range(2))
    g, x, weight = _single(g), _single(x), _single(weight)
    matrix, in_rows = _matrix(module, x)
    gradient = dense(module, g, matrix.shape)
    if not in_rows:
        dx, dweight, dbias = _columns_back(module, gradient, needed, matrix, mean, scale, weight, averaged)
    else:
        dx, dweight, dbias = _channels_back(
            module, gradient, needed, matrix, x.shape[:2], mean, scale, weight, averaged
        )
    return (
        None if dx is None else dx.reshape(x.shape),
        dweight.astype(x.dtype) if needed[1] else None,
        dbias.astype(x.dtype) if needed[2] else None,
    )


def _channels_back(module, g, needed, x, shape, mean, scale, weight, averaged):
    """Return the gradients of planes as rows, of weight and of bias."""
    steepness = scale if weight is None else scale * weight
    if not (averaged or needed[1] or needed[2]):
        (column,) = _columns(module, x.dtype, shape, steepness)
        return g * column, None, None
    near = _are_near(mean, scale)
    (column,) = _columns(module, x.dtype, shape, None if near else mean)
    level, slope = (sums.reshape(shape).sum(0) for sums in _sums_back(module, g, x, column))
    if near:
        slope -= mean * level
    dweight = slope * scale
    if not needed[0]:
        return None, dweight, level
    if not averaged:
        (column,) = _columns(module, x.dtype, shape, steepness)
        return g * column, dweight, level
    share = steepness / (shape[0] * x.shape[1])
    tilt, rest = share * slope * scale * scale, share * level
    columns = _columns(module, x.dtype, shape, steepness, tilt, rest - mean * tilt if near else rest)
    return _combine_rows(module, g, x, column, *columns), dweight, level


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
@fused("NativeBatchNormBackward0", unread=("bias",))
def batch_norm_fixed(xp, x, weight, bias, mean, variance, *, eps):
    """Scale and shift each channel by a mean and a variance that are constants."""
    module = xp.module
    mean = mean.astype(WIDE)
    scale = 1 / module.sqrt(variance.astype(WIDE) + eps)
    factor = scale if weight is None else scale * weight
    matrix, in_rows = _matrix(module, x)
    if in_rows:
        out = _scale_channels(module, matrix, x.shape[:2], mean, scale, factor, 0 if bias is None else bias)
    else:
        out = _scale_columns(module, matrix - _repeated(mean, matrix), factor, bias)
    return out.reshape(x.shape), (mean, scale)


def _nothing(node):
    return np.empty(0, np.float32)


batch_norm_fixed.shows(
    "eps input=x running_mean=mean running_var=variance training=False weight", result1=_nothing, result2=_nothing
)


@batch_norm_fixed.backward
def batch_norm_fixed_back(xp, g, needed, residuals, x, weight, bias, mean, variance, *, eps):
    return (*_batch_norm_back(xp.module, g, needed, residuals, x, weight, averaged=False), None, None)


@batch_norm_fixed.decomposition
def batch_norm_fixed_parts(xp, x, weight, bias, mean, variance, *, eps):
    shape = (x.shape[1], *(1,) * (len(x.shape) - 2))
    normal = (x - xp.reshape(mean, shape=shape)) * xp.rsqrt(xp.reshape(variance, shape=shape) + eps)
    return affine(xp, normal, weight, bias)


# ---- group_norm ----
@fused("NativeGroupNormBackward0", unread=("bias",))
def group_norm(xp, x, weight, bias, *, groups, eps):
    """Normalise each group of channels of each sample."""
    module = xp.module
    samples, channels = x.shape[:2]
    matrix, in_rows = _matrix(module, x)
    if not in_rows:
        rows = matrix.reshape(samples * groups, matrix.shape[1] // groups)
        out, residuals = normalise_rows(module, rows, None, None, eps)
        return affine(xp, out.reshape(x.shape), weight, bias), residuals
    shape = samples, groups, channels // groups
    lines, squares = (part.reshape(shape) for part in _moments(module, matrix))
    mean, variance = (part[:, :, None] for part in _combined(lines, squares, matrix.shape[1], 2))
    scale = 1 / module.sqrt(variance + eps)
    factor = scale if weight is None else scale * weight.reshape(shape[1:])
    shift = 0 if bias is None else bias.reshape(shape[1:])
    out = _scale_channels(module, matrix, shape, mean, scale, factor, shift)
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


@group_norm.backward
def group_norm_back(xp, g, needed, residuals, x, weight, bias, *, groups, eps):
    module = xp.module
    samples, channels = x.shape[:2]
    matrix, in_rows = _matrix(module, x)
    gradient = dense(module, g, matrix.shape)
    if not in_rows:
        return _short_groups_back(xp, gradient.reshape(x.shape), needed, residuals, x, weight, groups)
    mean, scale = residuals
    shape = samples, groups, channels // groups
    near = _are_near(mean, scale)
    (column,) = _columns(module, x.dtype, shape, None if near else mean)
    level, slope = (sums.reshape(shape) for sums in _sums_back(module, gradient, matrix, column))
    if near:
        slope -= mean * level
    dx = dweight = dbias = None
    if needed[1]:
        dweight = (slope * scale).sum(0).reshape(-1).astype(x.dtype)
    if needed[2]:
        dbias = level.sum(0).reshape(-1).astype(x.dtype)
    if needed[0]:
        steepness = scale
        if weight is not None:
            factors = weight.reshape(shape[1:])
            level, slope, steepness = level * factors, slope * factors, scale * factors
        share = scale / (shape[2] * matrix.shape[1])
        tilt = slope.sum(2, keepdims=True) * share * scale * scale
        rest = level.sum(2, keepdims=True) * share
        columns = _columns(module, x.dtype, shape, steepness, tilt, rest - mean * tilt if near else rest)
        dx = _combine_rows(module, gradient, matrix, column, *columns).reshape(x.shape)
    return dx, dweight, dbias


def _short_groups_back(xp, g, needed, residuals, x, weight, groups):
    module, axis = xp.module, (0, *range(2, x.ndim))
    mean, scale = residuals
    shape = x.shape[0] * groups, math.prod(x.shape[1:]) // groups
    dx = dweight = None
    if needed[1]:
        away = dense(module, x, shape) - mean[:, None]
        away *= scale[:, None]
        dweight = (away.reshape(x.shape) * g).sum(axis)
    if needed[0]:
        steep = g if weight is None else affine(xp, g, weight, None)
        dx, _, _ = normalise_rows_back(
            module, steep.reshape(shape), (True, False, False), residuals, dense(module, x, shape), None
        )
        dx = dx.reshape(x.shape)
    return dx, dweight, g.sum(axis) if needed[2] else None


@group_norm.decomposition
def group_norm_parts(xp, x, weight, bias, *, groups, eps):
    shape = tuple(x.shape)
    axes = tuple(range(2, len(shape) + 1))
    apart = xp.reshape(x, shape=(shape[0], groups, shape[1] // groups, *shape[2:]))
    return affine(xp, xp.reshape(normal(xp, apart, axes, eps), shape=shape), weight, bias)
