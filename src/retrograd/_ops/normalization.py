"""Layer and RMS normalisation: every row is brought to variance (or mean square) 1, then scaled and shifted by column.

The rows are taken in strips that stay in the processor's cache, so that an array is read from memory once; strips of large arrays
are shared among threads. Sums along rows and down columns are products with a vector, which BLAS computes in all lanes. The
variance is that of the distances from the mean: a mean of squares less a squared mean would lose all digits of numbers far from 0.
"""

from __future__ import annotations

import math

import numpy as np

from .._core import parallel, passes
from .._core.fused import fused
from .._core.passes import number
from .._core.shown import in_memory, residual, saved_array
from .._thresholds import NORMALIZATION_STRIP as STRIP

LONG_ROW, MANY = 512, 1 << 14  # elements of a row, and of all rows, from which broadcasting without buffers pays
NEAR = 4  # deviations: a mean farther from 0 is rounded so coarsely that its error is taken off as well


def strips_of(module, count, width):
    """Return how many strips rows make, and how many rows each has; a GPU takes all rows at once."""
    step = max(1, count if module is not np else STRIP // max(width, 1))
    return -(-count // step), step


def is_strip(module, count, width):
    """Tell whether rows are a single strip."""
    return count > 0 and (module is not np or count * width <= STRIP)


def has_long_rows(module, count, width):
    """Tell whether NumPy takes rows more quickly as they lie than through its buffers."""
    return module is np and width >= LONG_ROW and count * width >= MANY


def over_strips(module, work, count, width):
    """Call `work(k, rows)` for the strips of rows, on several threads where there is much to do."""
    number, step = strips_of(module, count, width)

    many = number > 1 and count * width >= parallel.WIDE
    parallel.over_blocks(
        lambda k, _: work(k, slice(k * step, (k + 1) * step)), number, 1, many, has_long_rows(module, count, width)
    )


def ones(module, count, dtype):
    """Return a vector of ones: a product with it is a sum."""
    return passes.ones(count, dtype) if module is np else module.ones(count, dtype)


def dots(module, x, y):
    """Multiply each row of a matrix by the same row of another."""
    return np.vecdot(x, y) if module is np else module.einsum("ij,ij->i", x, y)


def dense(module, x, shape):
    """Give an array a shape, in dense memory."""
    return module.ascontiguousarray(x).reshape(shape)


def down(module, parts):
    """Add the rows of a matrix up."""
    return parts[0] if len(parts) == 1 else ones(module, len(parts), parts.dtype) @ parts


# ---- rows of a matrix ----
def _normalise_strip(module, x, one, weight, bias, eps, centred, out):
    """Write the normalised rows of a strip; return (mean, 1 / deviation) of each."""
    width = number(module, len(one), x.dtype)
    if centred:
        mean = x.dot(one)
        mean /= width
        module.subtract(x, mean[:, None], out)
        variance = dots(module, out, out)
        variance /= width
        if (mean * mean > NEAR * NEAR * variance).any():
            wrong = out.dot(one)
            wrong /= width
            out -= wrong[:, None]
            mean += wrong
            variance -= wrong * wrong
    else:
        mean = None
        variance = dots(module, x, x)
        variance /= width
    variance += eps
    module.sqrt(variance, variance)
    scale = module.divide(number(module, 1, x.dtype), variance, variance)
    module.multiply(out if centred else x, scale[:, None], out)
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return mean, scale


def normalise_rows(module, x, weight, bias, eps, centred=True):
    """Return the normalised rows of a dense matrix, scaled and shifted by column; and (mean, 1 / deviation) of each."""
    count, width = x.shape
    out = module.empty(x.shape, x.dtype)
    one = ones(module, width, x.dtype)
    if is_strip(module, count, width):
        strip = parallel.without_buffers(_normalise_strip) if has_long_rows(module, count, width) else _normalise_strip
        return out, strip(module, x, one, weight, bias, eps, centred, out)
    mean = module.empty(count, x.dtype) if centred else None
    scale = module.empty(count, x.dtype)

    def work(k, rows):
        middle, scale[rows] = _normalise_strip(module, x[rows], one, weight, bias, eps, centred, out[rows])
        if centred:
            mean[rows] = middle

    over_strips(module, work, count, width)
    return out, (mean, scale)


def _strip_back(module, g, needed, mean, scale, x, weight, factors, out):
    """Write the gradient of the rows of a strip into `out`, if that is needed; return those of column weights and shifts."""
    dweight = dbias = None
    if needed[2]:
        dbias = ones(module, len(x), x.dtype).dot(g)
    if not (needed[0] or needed[1]):
        return dweight, dbias
    away = x if mean is None else x - mean[:, None]
    products = g * away
    if needed[1]:
        dweight = scale.dot(products)
    if not needed[0]:
        return dweight, dbias
    # dx = s (g w - average(g w) - (x - mean) s^2 average(g w (x - mean))); without a mean there is no average of g w
    width = number(module, len(factors), x.dtype)
    along = products.dot(factors)
    along *= scale
    along *= scale
    along /= width
    module.multiply(away, along[:, None], products)
    if mean is not None:
        level = g.dot(factors)
        level /= width
        products += level[:, None]
    if weight is None:
        module.subtract(g, products, out)
    else:
        module.multiply(g, weight, out)
        out -= products
    out *= scale[:, None]
    return dweight, dbias


def normalise_rows_back(module, g, needed, residuals, x, weight):
    """Return the gradients of rows, column weights and column shifts; one pass over x and g for all three."""
    mean, scale = residuals
    count, width = x.shape
    out = module.empty(x.shape, x.dtype) if needed[0] else None
    factors = ones(module, width, x.dtype) if weight is None else weight
    if is_strip(module, count, width):
        back = parallel.without_buffers(_strip_back) if has_long_rows(module, count, width) else _strip_back
        return out, *back(module, g, needed, mean, scale, x, weight, factors, out)
    strips, _ = strips_of(module, count, width)
    dweight, dbias = (module.zeros((max(strips, 1), width), x.dtype) if need else None for need in needed[1:])

    def work(k, rows):
        middle, part = None if mean is None else mean[rows], None if out is None else out[rows]
        steep, level = _strip_back(module, g[rows], needed, middle, scale[rows], x[rows], weight, factors, part)
        if steep is not None:
            dweight[k] = steep
        if level is not None:
            dbias[k] = level

    over_strips(module, work, count, width)
    return out, *(None if parts is None else down(module, parts) for parts in (dweight, dbias))


# ---- a single row: numbers instead of columns ----
def _normalise_row(x, weight, bias, eps):
    width = x.size
    mean = x.dot(passes.ones(width, x.dtype)) / width
    out = x - mean
    variance = out.dot(out) / width
    if mean * mean > NEAR * NEAR * variance:
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
    return x.ndim == ndim == 1 and type(x) is np.ndarray and 0 < x.size <= STRIP


# ---- layer_norm ----
def _flat(parameter):
    return None if parameter is None else parameter.reshape(-1)


def _as_rows(x, ndim):
    """Return how an array lies as a matrix whose rows are its last axes."""
    kept = x.ndim - ndim
    return math.prod(x.shape[:kept]), math.prod(x.shape[kept:])


def _of_rows(node):
    """Return the shape of what there is one of for each row."""
    shape, ndim = tuple(saved_array(node, "x").shape), node.params["ndim"]
    return (*shape[: len(shape) - ndim], *(1,) * ndim)


def _inner_shape(node):
    shape = tuple(saved_array(node, "x").shape)
    return shape[len(shape) - node.params["ndim"] :]


@fused("NativeLayerNormBackward0")
def layer_norm(xp, x, weight, bias, *, ndim, eps):
    """Normalise over the last `ndim` axes."""
    if _is_row(x, ndim):
        return _normalise_row(x, weight, bias, eps)
    matrix = dense(xp.module, x, _as_rows(x, ndim))
    out, residuals = normalise_rows(xp.module, matrix, _flat(weight), _flat(bias), eps)
    return out.reshape(x.shape), residuals


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
    return _rows_back(xp.module, g, needed, residuals, x, weight, ndim)


def _rows_back(module, g, needed, residuals, x, weight, ndim):
    shape = _as_rows(x, ndim)
    dx, dweight, dbias = normalise_rows_back(
        module, dense(module, g, shape), needed, residuals, dense(module, x, shape), _flat(weight)
    )
    inner = x.shape[x.ndim - ndim :]
    return (
        None if dx is None else dx.reshape(x.shape),
        None if dweight is None else dweight.reshape(inner),
        None if dbias is None else dbias.reshape(inner),
    )


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
@fused("MulBackward0")
def rms_norm(xp, x, weight, *, ndim, eps):
    """Divide by the root of the mean square over the last `ndim` axes."""
    matrix = dense(xp.module, x, _as_rows(x, ndim))
    out, residuals = normalise_rows(xp.module, matrix, _flat(weight), None, eps, centred=False)
    return out.reshape(x.shape), residuals


rms_norm.shows(
    "other=weight", self=lambda node: saved_array(node, "x") * in_memory(node._kept()[1]).reshape(_of_rows(node))
)


@rms_norm.backward
def rms_norm_back(xp, g, needed, residuals, x, weight, *, ndim, eps):
    return _rows_back(xp.module, g, (*needed, False), residuals, x, weight, ndim)[:2]


@rms_norm.decomposition
def rms_norm_parts(xp, x, weight, *, ndim, eps):
    rank = len(x.shape)
    square = xp.mean(x * x, axis=tuple(range(rank - ndim, rank)), keepdims=True)
    out = x * xp.rsqrt(square + eps)
    return out if weight is None else out * weight
