"""Losses of two arrays, element by element, with the sum or mean in the same pass; and losses of margins between scores.

Large arrays are read block by block: what lies between the inputs and the sum stays in the processor's cache, and the
backward computes it again instead of reading it from memory.
"""

from __future__ import annotations

import numpy as np

from .._core import kernels, passes
from .._core.fused import fused
from .._core.shown import saved_array
from .._thresholds import LARGE_LOSS as MANY
from .._thresholds import PAIRS_OF_CLASSES as MOST
from . import along, cumulative, elementwise, elementwise_unary, reduce  # noqa: F401 - the words of the decompositions

NONE, MEAN, SUM = 0, 1, 2  # torch's numbers of reductions
LOG_FLOOR = -100  # below which torch cuts the logarithms of binary cross entropy


def reduced(xp, values, reduction):
    """Reduce values of any kind by words of `xp`."""
    if reduction == NONE:
        return values
    axes = tuple(range(len(values.shape)))
    return (xp.mean if reduction == MEAN else xp.sum)(values, axis=axes, keepdims=False)


def blocks_of(*arrays):
    """Return the parts of large arrays of one shape that stay in the cache together; None where that is not so."""
    first = arrays[0]
    if type(first) is not np.ndarray or first.size < MANY:
        return None
    for array in arrays:
        if array is not None and (
            type(array) is not np.ndarray
            or array.shape != first.shape
            or array.dtype != first.dtype
            or not array.flags.c_contiguous
        ):
            return None
    flat = [None if array is None else array.reshape(-1) for array in arrays]
    step = kernels.BLOCK
    return [
        tuple([None if array is None else array[at : at + step] for array in flat]) for at in range(0, first.size, step)
    ]


def total_of(values):
    """Sum a block by BLAS."""
    return float(values.dot(passes.ones(values.size, values.dtype)))


def run_pointwise(xp, value, arrays, reduction, params):
    """Compute values of arrays, reduced; in blocks if that pays."""
    blocks = blocks_of(*arrays)
    if blocks is None:
        values = value(xp.module, *arrays, **params)
        if reduction == NONE:
            return values
        total = xp.sum(values, axis=tuple(range(values.ndim)), keepdims=False)
        return total / values.size if reduction == MEAN else total
    x = arrays[0]
    if reduction == NONE:
        out = np.empty(x.shape, x.dtype)
        flat, at = out.reshape(-1), 0
        for block in blocks:
            flat[at : at + block[0].size] = value(np, *block, **params)
            at += block[0].size
        return out
    total = sum([total_of(value(np, *block, **params)) for block in blocks])
    return x.dtype.type(total / x.size if reduction == MEAN else total)


def run_slope(xp, slope, g, arrays, reduction, params):
    """Compute slopes times what arrived."""
    x = arrays[0]
    blocks = blocks_of(*arrays) if reduction != NONE else None
    if blocks is None:
        out = slope(xp.module, *arrays, **params)
        return out * (g if reduction != MEAN else g / max(out.size, 1))
    scale = x.dtype.type(g / x.size if reduction == MEAN else g)
    out = np.empty(x.shape, x.dtype)
    flat, at = out.reshape(-1), 0
    for block in blocks:
        np.multiply(slope(np, *block, **params), scale, out=flat[at : at + block[0].size])
        at += block[0].size
    return out


# ---- losses of a difference ----
def _of_difference(name, node_name, torchs_bound, bounded, factor, in_words):
    """Declare a loss of x - y that is a parabola up to a bound and goes on straight beyond.

    With c the difference, cut at the bound, it is c (x - y - c / 2) times a factor: the sum of all is two dot products.
    """

    def value(m, gap, bound):
        cut = bounded(m, gap, bound)
        return cut * (gap - 0.5 * cut) * factor(bound)

    def slope(m, gap, bound):
        return bounded(m, gap, bound) * factor(bound)

    def run(xp, x, y, *, reduction, bound):
        blocks = blocks_of(x, y) if reduction != NONE else None
        if blocks is None:
            gap = x - y
            return run_pointwise(xp, value, (gap,), reduction, {"bound": bound}), gap
        total, space, other = 0.0, np.empty(kernels.BLOCK, x.dtype), np.empty(kernels.BLOCK, x.dtype)
        for a, b in blocks:
            gap = np.subtract(a, b, out=space[: a.size])
            cut = np.clip(gap, -bound, bound, out=other[: a.size])
            total += float(cut.dot(gap)) - 0.5 * float(cut.dot(cut))
        total *= factor(bound)
        return x.dtype.type(total / x.size if reduction == MEAN else total), None

    run.__name__ = name
    run.__doc__ = f"{name} of two arrays."
    operation = fused(node_name, reads_result=False)(run)
    operation.shows(f"{torchs_bound}=bound reduction self target=y")

    @operation.backward
    def back(xp, g, needed, gap, x, y, *, reduction, bound):
        if gap is None:
            dx = _slopes(x, y, g * factor(bound), reduction, lambda part: np.clip(part, -bound, bound, out=part))
        else:
            dx = run_slope(xp, slope, g, (gap,), reduction, {"bound": bound})
        return _both_ways(xp, dx, needed, x, y)

    @operation.decomposition
    def parts(xp, x, y, *, reduction, bound):
        return reduced(xp, in_words(xp, x - y, bound), reduction)

    return operation


def _slopes(x, y, g, reduction, cut=None):
    """Write the difference of two large arrays, cut and times what arrived."""
    scale = x.dtype.type(g / x.size if reduction == MEAN else g)
    dx = np.empty(x.shape, x.dtype)
    flat, at = dx.reshape(-1), 0
    for a, b in blocks_of(x, y):
        part = np.subtract(a, b, out=flat[at : at + a.size])
        if cut is not None:
            cut(part)
        part *= scale
        at += a.size
    return dx


def _both_ways(xp, dx, needed, x, y):
    """Return the gradients of x and y, one the negative of the other, in their shapes."""
    if not needed[1]:
        return dx if dx.shape == x.shape else xp.sum_to(dx, shape=x.shape), None
    if dx.shape == x.shape == y.shape:
        return dx if needed[0] else None, -dx
    return xp.sum_to(dx, shape=x.shape) if needed[0] else None, xp.sum_to(-dx, shape=y.shape)


def _cut(m, gap, bound):
    return m.minimum(m.maximum(gap, -bound), bound)


smooth_l1_loss = _of_difference(
    "smooth_l1_loss",
    "SmoothL1LossBackward0",
    "beta",
    _cut,
    lambda bound: 1 / bound,
    lambda xp, gap, bound: xp.where(xp.less(xp.abs(gap), bound), gap * gap * (0.5 / bound), xp.abs(gap) - 0.5 * bound),
)
huber_loss = _of_difference(
    "huber_loss",
    "HuberLossBackward0",
    "delta",
    _cut,
    lambda bound: 1,
    lambda xp, gap, bound: xp.where(
        xp.less_equal(xp.abs(gap), bound), gap * gap * 0.5, (xp.abs(gap) - 0.5 * bound) * bound
    ),
)


@fused("MseLossBackward0", reads_result=False, shows="reduction self target=y")
def mse_loss(xp, x, y, *, reduction):
    """(x - y) ** 2."""
    blocks = blocks_of(x, y) if reduction != NONE else None
    if blocks is None:
        gap = x - y
        if reduction == NONE:
            return gap * gap, gap
        flat = gap.reshape(-1)
        total = flat.dot(flat)
        return total / flat.size if reduction == MEAN else total, gap
    buffer, total = np.empty(kernels.BLOCK, x.dtype), 0.0
    for a, b in blocks:
        gap = np.subtract(a, b, out=buffer[: a.size])
        total += float(gap.dot(gap))
    return x.dtype.type(total / x.size if reduction == MEAN else total), None


@mse_loss.backward
def mse_loss_back(xp, g, needed, gap, x, y, *, reduction):
    if gap is None:
        return _both_ways(xp, _slopes(x, y, g * 2, reduction), needed, x, y)
    dx = gap * (g * 2 if reduction != MEAN else g * (2 / max(gap.size, 1)))
    return _both_ways(xp, dx, needed, x, y)


@mse_loss.decomposition
def mse_loss_parts(xp, x, y, *, reduction):
    gap = x - y
    return reduced(xp, gap * gap, reduction)


# ---- losses of two arrays and weights ----
def _gradient(xp, slope, g, given, reduction, wanted):
    """Run a slope and bring the gradient to the shape of an input, which may have been broadcast."""
    out = run_slope(xp, slope, g, given, reduction, {})
    return out if out.shape == wanted.shape else xp.sum_to(out, shape=wanted.shape)


def _weighted(values, weight):
    return values if weight is None else values * weight


def _bce(m, x, y, weight):
    # -(y log(x) + (1 - y) log(1 - x)), as y (log(1 - x) - log(x)) - log(1 - x)
    other = m.maximum(m.log1p(-x), LOG_FLOOR)
    values = other - m.maximum(m.log(x), LOG_FLOOR)
    values *= y
    values -= other
    return _weighted(values, weight)


def _bce_slope(m, x, y, weight):
    return _weighted((x - y) / m.maximum((1 - x) * x, 1e-12), weight)


def _bce_slope_of_target(m, x, y, weight):
    return _weighted(m.log1p(-x) - m.log(x), weight)


@fused("BinaryCrossEntropyBackward0", reads_result=False, shows="reduction self target=y weight", edges=(0, 1))
def binary_cross_entropy(xp, x, y, weight, *, reduction):
    """Cross entropy of probabilities x and y that something is so."""
    return run_pointwise(xp, _bce, (x, y, weight), reduction, {}), None


@binary_cross_entropy.backward
def binary_cross_entropy_back(xp, g, needed, residuals, x, y, weight, *, reduction):
    given = (x, y, weight)
    return (
        _gradient(xp, _bce_slope, g, given, reduction, x) if needed[0] else None,
        _gradient(xp, _bce_slope_of_target, g, given, reduction, y) if needed[1] else None,
        None,
    )


@binary_cross_entropy.decomposition
def binary_cross_entropy_parts(xp, x, y, weight, *, reduction):
    inside = xp.clip(xp.log(x), low=LOG_FLOOR, high=None)
    outside = xp.clip(xp.log1p(-x), low=LOG_FLOOR, high=None)
    return reduced(xp, _weighted((y - 1) * outside - y * inside, weight), reduction)


def _logits_bce(m, x, y, weight, pos_weight):
    rest = m.log1p(m.exp(-m.abs(x)))
    if pos_weight is None:
        above = m.subtract(x > 0, y)  # times x: what max(x, 0) - x y is, where infinities meet no zero of y
        above *= x
        rest += above
        return _weighted(rest, weight)
    rest -= m.minimum(x, 0)  # log(1 + exp(-x)); no infinity is subtracted from another
    return _weighted(rest * ((pos_weight - 1) * y + 1) + (1 - y) * x, weight)


def _logits_bce_slope(m, x, y, weight, pos_weight):
    sure = m.exp(-x)
    sure += 1
    sure = 1 / sure
    if pos_weight is None:
        sure -= y
    else:
        raised = pos_weight * y
        sure = sure * (raised + 1 - y) - raised
    return _weighted(sure, weight)


def _logits_bce_slope_of_target(m, x, y, weight, pos_weight):
    slope = -x
    if pos_weight is not None:
        slope = slope + (pos_weight - 1) * (m.log1p(m.exp(-m.abs(x))) + m.maximum(-x, 0))
    return _weighted(slope, weight)


@fused(
    "BinaryCrossEntropyWithLogitsBackward0",
    reads_result=False,
    shows="pos_weight reduction self target=y weight",
    edges=(0, 1),
)
def binary_cross_entropy_with_logits(xp, x, y, weight, pos_weight, *, reduction):
    """Cross entropy of the probability sigmoid(x) and y, where y may count more by `pos_weight`."""
    return run_pointwise(xp, _logits_bce, (x, y, weight, pos_weight), reduction, {}), None


@binary_cross_entropy_with_logits.backward
def binary_cross_entropy_with_logits_back(xp, g, needed, residuals, x, y, weight, pos_weight, *, reduction):
    given = (x, y, weight, pos_weight)
    return (
        _gradient(xp, _logits_bce_slope, g, given, reduction, x) if needed[0] else None,
        _gradient(xp, _logits_bce_slope_of_target, g, given, reduction, y) if needed[1] else None,
        None,
        None,
    )


@binary_cross_entropy_with_logits.decomposition
def binary_cross_entropy_with_logits_parts(xp, x, y, weight, pos_weight, *, reduction):
    below = xp.softplus(-x)
    values = (1 - y) * x + (below if pos_weight is None else ((pos_weight - 1) * y + 1) * below)
    return reduced(xp, _weighted(values, weight), reduction)


def _soft_margin(m, x, y):
    return m.log1p(m.exp(-x * y))


def _soft_margin_slope(m, x, y):
    power = m.exp(-x * y)
    return -y * power / (power + 1)  # NaN where the power is infinite, as torch's


@fused("SoftMarginLossBackward0", reads_result=False, shows="reduction self target=y", edges=(0,))
def soft_margin_loss(xp, x, y, *, reduction):
    """log(1 + exp(-x y))."""
    return run_pointwise(xp, _soft_margin, (x, y), reduction, {}), None


@soft_margin_loss.backward
def soft_margin_loss_back(xp, g, needed, residuals, x, y, *, reduction):
    return _gradient(xp, _soft_margin_slope, g, (x, y), reduction, x), None


@soft_margin_loss.decomposition
def soft_margin_loss_parts(xp, x, y, *, reduction):
    return reduced(xp, xp.log1p(xp.exp(-x * y)), reduction)


# ---- losses that want the score of the right classes to exceed every other by a margin ----
def _finish(xp, values, shape, reduction):
    """Reduce the losses of rows; `shape` is that of the input, which may be a single row."""
    if reduction == NONE:
        return values if len(shape) == 2 else values[0]
    total = values.sum()
    return total / len(values) if reduction == MEAN else total


def _per_row(xp, g, rows, reduction):
    """Return what arrived for each row, as a column."""
    if reduction == NONE:
        return g.reshape(-1, 1)
    return xp.module.broadcast_to(g / max(rows, 1) if reduction == MEAN else g, (rows, 1))


def _in_rows(xp, values, shape, reduction):
    """Reduce by words of `xp`; values have a row axis."""
    if len(shape) < 2 and reduction == NONE:
        return xp.reshape(values, shape=())
    return reduced(xp, values, reduction)


# ---- one right class ----
def _multi_margin(xp, x, target, weight, p, margin):
    """Return the parts of the loss above zero, the rows' numbers, and the targets."""
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    target = target.reshape(-1)
    at = (xp.module.arange(len(rows)), target)
    gaps = xp.module.maximum(rows - (rows[at] - margin)[:, None], 0)
    gaps[at] = 0
    return gaps, at, None if weight is None else weight[target][:, None]


@fused("MultiMarginLossBackward0", reads_result=False, shows="margin p reduction self target weight", edges=(0,))
def multi_margin_loss(xp, x, target, weight, *, p, margin, reduction):
    """max(0, margin - x[target] + x[other]) ** p, averaged over the classes."""
    gaps, _, own = _multi_margin(xp, x, target, weight, p, margin)
    values = gaps if p == 1 else gaps * gaps
    values = (values if own is None else values * own).sum(1) / gaps.shape[1]
    return _finish(xp, values, x.shape, reduction), None


@multi_margin_loss.backward
def multi_margin_loss_back(xp, g, needed, residuals, x, target, weight, *, p, margin, reduction):
    gaps, at, own = _multi_margin(xp, x, target, weight, p, margin)
    slopes = (gaps > 0).astype(x.dtype) if p == 1 else 2 * gaps
    if own is not None:
        slopes *= own
    slopes *= _per_row(xp, g, len(gaps), reduction) / gaps.shape[1]
    slopes[at] = -slopes.sum(1)
    return slopes.reshape(x.shape), None, None


@multi_margin_loss.decomposition
def multi_margin_loss_parts(xp, x, target, weight, *, p, margin, reduction):
    classes = x.shape[-1] if x.shape else 1
    rows, target = xp.reshape(x, shape=(-1, classes)), xp.reshape(target, shape=(-1, 1))
    own = xp.take_along(rows, target, axis=1)
    numbers = xp.cumsum(xp.ones_like(xp.broadcast_to(target, shape=rows.shape)), axis=1) - 1
    gaps = xp.where(xp.equal(numbers, target), 0, xp.relu(rows - own + margin))
    values = gaps if p == 1 else gaps * gaps
    if weight is not None:
        values = values * xp.take(weight, target)
    return _in_rows(xp, xp.mean(values, axis=(1,), keepdims=False), x.shape, reduction)


# ---- several right classes ----
def _right(xp, target):
    """Return which entries of rows of targets count, those before the first -1, and the targets without such."""
    there = (target < 0).cumsum(1) == 0
    return there, xp.module.where(there, target, 0)


def _chunks(x, longest):
    """Return slices of rows, few enough to compare every target with every class at once."""
    count = max(1, MOST // max(longest * x.shape[1], 1))
    return [slice(at, at + count) for at in range(0, len(x), count)]


def _multilabel(xp, x, target):
    """Yield, for slices of rows, the gaps of every right class to every other, and what the slices have of the targets."""
    m = xp.module
    there, target = _right(xp, target)
    longest = int(there.sum(1).max()) if there.size else 0
    there, target = there[:, :longest], target[:, :longest]
    for part in _chunks(x, longest):
        rows, named, counts = x[part], target[part], there[part]
        right = m.zeros(rows.shape, bool)
        numbers = m.arange(len(rows))
        for k in range(longest):
            right[numbers, named[:, k]] |= counts[:, k]
        own = rows[numbers[:, None], named]
        gaps = m.maximum(1 - own[:, :, None] + rows[:, None, :], 0)
        gaps *= counts[:, :, None]
        gaps *= ~right[:, None, :]
        yield part, gaps, named


@fused("MultilabelMarginLossBackward0", edges=(0,))
def multilabel_margin_loss(xp, x, target, *, reduction):
    """max(0, 1 - x[right] + x[other]), summed over right classes and others, divided by the number of classes."""
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    values = xp.module.empty(len(rows), x.dtype)
    for part, gaps, _ in _multilabel(xp, rows, target.reshape(rows.shape)):
        values[part] = gaps.sum((1, 2)) / rows.shape[1]
    return _finish(xp, values, x.shape, reduction), None


def _is_target(node):
    """Mark the classes that a row of targets names before its first -1."""
    x, target = saved_array(node, "x"), saved_array(node, "target")
    marks = np.zeros(target.shape, x.dtype).reshape(-1, target.shape[-1] if target.ndim else 1)
    for row, named in zip(marks, target.reshape(marks.shape), strict=True):
        ends = np.flatnonzero(named < 0)
        row[named[: ends[0] if ends.size else None]] = 1
    return marks.reshape(target.shape)


multilabel_margin_loss.shows("reduction self target", is_target=_is_target)


@multilabel_margin_loss.backward
def multilabel_margin_loss_back(xp, g, needed, residuals, x, target, *, reduction):
    m = xp.module
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    out = m.zeros(rows.shape, x.dtype)
    for part, gaps, named in _multilabel(xp, rows, target.reshape(rows.shape)):
        above = (gaps > 0).astype(x.dtype)
        own = out[part]
        own += above.sum(1)
        m.add.at(own, (m.arange(len(own))[:, None], named), -above.sum(2))  # CuPy subtracts whole numbers only
    out *= _per_row(xp, g, len(rows), reduction) / rows.shape[1]
    return out.reshape(x.shape), None


@multilabel_margin_loss.decomposition
def multilabel_margin_loss_parts(xp, x, target, *, reduction):
    classes = x.shape[-1] if x.shape else 1
    rows, target = xp.reshape(x, shape=(-1, classes)), xp.reshape(target, shape=(-1, classes))
    there = xp.equal(xp.cumsum(xp.where(xp.less(target, 0), xp.ones_like(target), 0), axis=1), 0)
    named = xp.where(there, target, 0)
    own = xp.take_along(rows, named, axis=1)
    numbers = xp.cumsum(xp.ones_like(target), axis=1) - 1
    same = xp.equal(xp.expand_dims(named, axis=2), xp.expand_dims(numbers, axis=1))  # rows, targets, classes
    same = xp.logical_and(same, xp.expand_dims(there, axis=2))
    wrong = xp.logical_not(xp.any(same, axis=(1,), keepdims=True))
    gaps = xp.relu(1 - xp.expand_dims(own, axis=2) + xp.expand_dims(rows, axis=1))
    gaps = xp.where(xp.logical_and(wrong, xp.expand_dims(there, axis=2)), gaps, 0)
    return _in_rows(xp, xp.sum(gaps, axis=(1, 2), keepdims=False) / classes, x.shape, reduction)
