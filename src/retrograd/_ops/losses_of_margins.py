"""Losses that want the score of the right classes to exceed every other by a margin."""

from __future__ import annotations

import numpy as np

from .._core.fused import fused
from .._core.shown import saved_array
from .._thresholds import PAIRS_OF_CLASSES as MOST
from . import along, cumulative, elementwise, reduce  # noqa: F401 - the words of the decompositions
from .losses import MEAN, NONE, reduced


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
