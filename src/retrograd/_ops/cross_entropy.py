"""The negative log-likelihood of classes, from log-probabilities or from logits.

Note [Cross entropy from the largest logit]
The loss of a row of logits is log(s) + top - x[target], with top the largest logit and s the sum of exp(x - top). The forward reads
the logits once from memory and writes two numbers for each row; the backward, exp(x - top) * (scale / s) minus the scale at the
target, reads them again. Nothing of the logits' size is kept.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core import passes
from .._core.fused import fused
from .._core.numpy_namespace import is_half
from .._core.shown import saved_array
from .._native.program import formula
from .._thresholds import LARGE_CROSS_ENTROPY as FEW
from . import along, elementwise, reduce, softmax  # noqa: F401 - the words of the decompositions
from .losses import MEAN, NONE, SUM, reduced

INT64, UINT64, SINGLE = np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float32)


# ---- targets ----
def class_axis(x):
    """Return the axis of the classes: the second, or the only one."""
    return 1 if x.ndim > 1 else 0


def as_stack(x, target):
    """Give logits the shape (rows, classes) or (samples, classes, places), and their targets what fits it."""
    if x.ndim == 2:
        return x, target
    if x.ndim == 1:
        return x.reshape(1, -1), target.reshape(1)
    samples, classes = x.shape[:2]
    places = math.prod(x.shape[2:])
    return x.reshape(samples, classes, places), target.reshape(samples, places)


@lru_cache(64)
def _few_rows(count, step=1):
    return np.arange(0, count * step, step)


def _named(xp, x, target):
    """Return the index expression of the targets' elements."""
    rows = _few_rows(x.shape[0]) if x.shape[0] <= FEW and xp.module is np else xp.module.arange(x.shape[0])
    if x.ndim == 2:
        return rows, target
    return rows[:, None], target, xp.module.arange(x.shape[2])


def read_targets(xp, target, classes, ignore_index):
    """Return targets that are all classes, and which of them count (None: all do); refuse any that is no class."""
    if target.dtype != np.int64:
        target = target.astype(np.int64)
    if not target.size:
        return target, None
    unsigned = target.view(np.uint64)  # negative ones become the largest
    if unsigned.reshape(-1)[unsigned.argmax()] < classes and not 0 <= ignore_index < classes:
        return target, None
    counted = target != ignore_index
    strange = target[counted & (unsigned >= classes)]
    if strange.size:
        raise IndexError(
            f"Target {int(strange[0])} is out of bounds.\nHint: the input has {classes} classes, so targets go from 0 to "
            f"{classes - 1}; others are skipped only if they are ignore_index ({ignore_index})."
        )
    return (target, None) if counted.all() else (xp.module.where(counted, target, 0), counted)


def _weights(xp, target, counted, weight, dtype):
    """Return the weight of every target (None: one for each), and their sum."""
    if weight is None:
        if counted is None:
            return None, target.size
        return counted.astype(dtype), int(xp.module.count_nonzero(counted))
    own = weight[target]
    if counted is not None:
        own = xp.module.where(counted, own, own.dtype.type(0))
    return own, own.sum()


def _shared_scale(xp, g, own, counted, total, reduction):
    """Return by what the slope of each target's loss is multiplied: a number, or one for each."""
    scale = g / total if reduction == MEAN else g
    scale = scale if own is None else scale * own
    if counted is not None:  # 0 times infinity is NaN; of what counts without weight NaN, as torch's
        scale = xp.module.where(counted, scale, scale.dtype.type(0))
    return scale


def _finish(values, own, counted, total, reduction, shape):
    """Weigh and reduce the losses of the targets."""
    if own is not None:
        values = values * own
        if counted is not None:
            values[~counted] = 0  # of what is ignored, infinities and NaN, too
    if reduction == NONE:
        return values.reshape(shape)
    flat = values.reshape(-1)
    out = flat.dot(passes.ones(flat.size, flat.dtype)) if type(flat) is np.ndarray else flat.sum()
    return out / total if reduction == MEAN else out


# ---- in words ----
def _settled(xp, target, weight, ignore_index):
    """Return targets that are all classes, which of them count, and their weights or None."""
    counted = xp.not_equal(target, ignore_index)
    target = xp.where(counted, target, 0)
    own = None if weight is None else xp.where(counted, xp.take(weight, target), 0)
    return target, counted, own


def _averaged(xp, values, counted, own):
    axes = tuple(range(len(values.shape)))
    if own is not None:
        return reduced(xp, values, SUM) / reduced(xp, own, SUM)
    count = xp.count_nonzero(counted, axis=axes, keepdims=False)
    return reduced(xp, values, SUM) / xp.astype(count, dtype=values.dtype)  # a whole number would make it float64


def _picked(xp, q, target):
    axis = class_axis(q)
    if q.ndim == 1:
        target = xp.reshape(target, shape=())
    return xp.squeeze(xp.take_along(q, xp.expand_dims(target, axis=axis), axis=axis), axis=(axis,))


def nll_in_words(xp, q, target, weight, reduction, ignore_index):
    """Compute the loss of log-probabilities."""
    safe, counted, own = _settled(xp, target, weight, ignore_index)
    values = -_picked(xp, q, safe)
    if len(q.shape) == 1:
        counted, own = (one if one is None else xp.reshape(one, shape=()) for one in (counted, own))
    values = xp.where(counted, values if own is None else values * own, 0)
    return _averaged(xp, values, counted, own) if reduction == MEAN else reduced(xp, values, reduction)


def smoothed_in_words(xp, q, target, weight, reduction, ignore_index, smoothing):
    """Compute the loss of log-probabilities where the target does not have all of the probability."""
    axis = class_axis(q)
    classes = q.shape[axis]
    _, counted, own = _settled(xp, target, weight, ignore_index)
    if len(q.shape) == 1:
        counted, own = (one if one is None else xp.reshape(one, shape=()) for one in (counted, own))
    spread = q if weight is None else q * xp.reshape(weight, shape=(classes, *(1,) * (len(q.shape) - axis - 1)))
    values = xp.where(counted, -xp.sum(spread, axis=(axis,), keepdims=False), 0)
    even = _averaged(xp, values, counted, own) if reduction == MEAN else reduced(xp, values, reduction)
    main = nll_in_words(xp, q, target, weight, reduction, ignore_index)
    return main * (1 - smoothing) + even * (smoothing / classes)


# ---- batches of vmap ----
def _folded(count, batched, x, target):
    """Make the rows, and the targets, of all samples those of one."""
    x, target = (
        a if mine else np.broadcast_to(a, (count, *a.shape)) for a, mine in zip((x, target), batched[:2], strict=True)
    )
    if x.ndim == 2:  # samples of a single row
        return x, target.reshape(count)
    return x.reshape(count * x.shape[1], *x.shape[2:]), target.reshape(count * x.shape[1], *x.shape[3:])


def _declare_batches(operation):
    """Compute the losses of all targets at once, and reduce them sample by sample."""

    @operation.batch
    def batch(xp, count, batched, x, target, weight, *, reduction, ignore_index, **params):
        if weight is not None or not target.size or (target == ignore_index).any():
            return None
        rows, named = _folded(count, batched, x, target)
        values, residuals = operation.implementation(
            xp, rows, named, None, reduction=NONE, ignore_index=ignore_index, **params
        )
        if reduction == NONE:
            return values.reshape(count, *target.shape[batched[1] :]), residuals
        values = values.reshape(count, -1)
        out = values[:, 0] if values.shape[1] == 1 else xp.sum(values, axis=(1,))
        return (out / values.shape[1] if reduction == MEAN else out), residuals

    @operation.batch_backward
    def batch_back(xp, g, needed, residuals, batched, x, target, weight, *, reduction, **params):
        count = len(g)
        rows, named = _folded(count, batched, x, target)
        each = named.size // count
        g = g.reshape(-1) if reduction == NONE else np.repeat(g / each if reduction == MEAN else g, each)
        dx, _, _ = operation.back(xp, g, needed, residuals, rows, named, None, reduction=NONE, **params)
        return dx.reshape(x.shape if batched[0] else (count, *x.shape)), None, None


# ---- what torch shows of the nodes ----
def _log_probabilities(node):
    x = saved_array(node, "x")
    axis = class_axis(x)
    away = x - x.max(axis, keepdims=True)
    return away - np.log(np.exp(away).sum(axis, keepdims=True))


def _total_weight(node):
    x, target, weight = (saved_array(node, name) for name in ("x", "target", "weight"))
    counted = target[target != node.params["ignore_index"]]
    return np.asarray(counted.size if weight is None else weight[counted].sum(), x.dtype)


# ---- from log-probabilities ----
def _declare_nll(name, node_name):
    def run(xp, x, target, weight, *, reduction, ignore_index):
        stack, named = as_stack(x, target)
        safe, counted = read_targets(xp, named, stack.shape[1], ignore_index)
        own, total = _weights(xp, safe, counted, weight, x.dtype)
        values = -stack[_named(xp, stack, safe)]
        shape = x.shape[:1] * (x.ndim > 1) + x.shape[2:]
        return _finish(values, own, counted, total, reduction, shape), (safe, counted, own, total)

    run.__name__ = name
    run.__doc__ = "The negative of each target's log-probability."
    operation = fused(node_name, edges=(0,))(run)
    operation.shows("ignore_index reduction self target weight", total_weight=_total_weight)

    @operation.backward
    def back(xp, g, needed, residuals, x, target, weight, *, reduction, ignore_index):
        safe, counted, own, total = residuals
        dx = xp.module.zeros(x.shape, x.dtype)
        stack, _ = as_stack(dx, target)
        g = g.reshape(safe.shape) if reduction == NONE else g
        stack[_named(xp, stack, safe)] = -_shared_scale(xp, g, own, counted, total, reduction)
        return dx, None, None

    @operation.decomposition
    def parts(xp, x, target, weight, *, reduction, ignore_index):
        return nll_in_words(xp, x, target, weight, reduction, ignore_index)

    _declare_batches(operation)
    return operation


nll_loss = _declare_nll("nll_loss", "NllLossBackward0")
nll_loss2d = _declare_nll("nll_loss2d", "NllLoss2DBackward0")


# ---- from logits. See Note [Cross entropy from the largest logit] ----
@formula(wide=(0, 1, 2))
def _sums(xp, x, *weight, spread):
    """Return the largest logit of each row and the sum of exp(x - it); if wanted, also the weighted sum of x - it."""
    top = xp.max(x, axis=(1,), keepdims=True)
    away = x - top
    powers = xp.sum(xp.exp(away), axis=(1,), keepdims=True)
    if not spread:
        return top, powers
    return top, powers, xp.sum(away * weight[0] if weight else away, axis=(1,), keepdims=True)


@formula
def _slopes(xp, x, top, factor, *spread):
    """Return the gradient of logits but for that of the target's own; `spread` is what each row, or class, loses."""
    dx = xp.exp(x - top) * factor
    return dx - spread[0] if spread else dx


def _losses_of_few(x, target, reduction):
    """Return the loss of few rows, and what its backward reads; None where a target is ignored or a sum overflows."""
    if type(x) is not np.ndarray or target.dtype is not INT64:
        return None
    rows, classes = x.shape
    unsigned = target.view(UINT64)
    if not rows or not unsigned.item(unsigned.argmax()) < classes:
        return None
    places = target + _few_rows(rows, classes)
    powers = x - x.take(places)[:, None]
    np.exp(powers, powers)
    sums = powers.dot(passes.ones(classes, x.dtype))
    losses = np.log(sums)
    total = losses.dot(passes.ones(rows, x.dtype))
    if not total < np.inf:
        return None
    return losses if reduction == NONE else total / rows if reduction == MEAN else total, (places, powers, sums)


def _losses_of_few_back(g, places, powers, sums, reduction):
    scale = g / len(sums) if reduction == MEAN else g
    factor = scale / sums
    dx = powers * factor[:, None]
    dx.put(places, factor - scale)  # the target's own power is 1
    return dx


def _declare_cross_entropy(name, node_name, edges=(0,)):
    def run(xp, x, target, weight, *, reduction, ignore_index, smoothing):
        if x.size <= FEW and weight is None and not smoothing and x.ndim == 2 and x.dtype.itemsize > 2:
            few = None if 0 <= ignore_index < x.shape[1] else _losses_of_few(x, target, reduction)
            if few is not None:
                return few
        stack, named = as_stack(x, target)
        classes = stack.shape[1]
        safe, counted = read_targets(xp, named, classes, ignore_index)
        wide, weight, of_classes = _widened(x.dtype, weight, stack.ndim)
        own, total = _weights(xp, safe, counted, weight, wide)
        first = stack[_named(xp, stack, safe)].astype(wide, copy=False)
        top, powers, *spread = _sums(xp, stack, *of_classes, spread=bool(smoothing))
        logs = xp.module.log(powers)
        values = logs[:, 0] + (top[:, 0] - first)
        if smoothing:
            values *= wide.type(1 - smoothing)
            if own is not None:
                values *= own
            whole = classes if weight is None else weight.sum()
            values += (logs * whole - spread[0])[:, 0] * wide.type(smoothing / classes)
            own_values = counted
        else:
            own_values = own
        out = _finish(values, own_values, counted, total, reduction, x.shape[:1] * (x.ndim > 1) + x.shape[2:])
        return out.astype(x.dtype, copy=False), (safe, counted, own, total, first, top, powers)

    run.__name__ = name
    run.__doc__ = "The cross entropy of logits and classes. See Note [Cross entropy from the largest logit]."
    operation = fused(node_name, edges=edges, takes_halves=True)(run)
    operation.shows("ignore_index reduction target weight", self=_log_probabilities, total_weight=_total_weight)

    @operation.backward
    def back(xp, g, needed, residuals, x, target, weight, *, reduction, ignore_index, smoothing):
        if len(residuals) == 3:
            return _losses_of_few_back(g, *residuals, reduction), None, None
        safe, counted, own, total, first, top, powers = residuals
        stack, _ = as_stack(x, target)
        wide, weight, of_classes = _widened(x.dtype, weight, stack.ndim)
        g = g.astype(wide)
        g = g.reshape(safe.shape) if reduction == NONE else g
        one = factor = _shared_scale(xp, g, own, counted, total, reduction)
        spread, of_targets = [], []
        if smoothing:
            even = _shared_scale(xp, g, counted, counted, total, reduction) * wide.type(smoothing / stack.shape[1])
            one = one * wide.type(1 - smoothing)
            factor = one + even * (stack.shape[1] if weight is None else weight.sum())
            of_targets = [even if weight is None else even * weight[safe]]
            even = xp.module.broadcast_to(even, safe.shape)[:, None]
            spread = [even if weight is None else even * of_classes[0]]
        factor = xp.module.broadcast_to(factor, safe.shape)[:, None] / powers
        dx = _slopes(xp, stack, top, factor, *spread)
        dx[_named(xp, dx, safe)] = _slopes(xp, first, top[:, 0], factor[:, 0], *of_targets) - one
        return dx.reshape(x.shape), None, None

    @operation.decomposition
    def parts(xp, x, target, weight, *, reduction, ignore_index, smoothing):
        q = xp.log_softmax(x, axis=class_axis(x))
        if smoothing:
            return smoothed_in_words(xp, q, target, weight, reduction, ignore_index, smoothing)
        return nll_in_words(xp, q, target, weight, reduction, ignore_index)

    _declare_batches(operation)
    return operation


def _widened(dtype, weight, rank):
    """Return the dtype that logits are computed in, the weights in it, and, if there are any, as they broadcast over logits."""
    wide = SINGLE if is_half(dtype) else dtype
    if weight is None:
        return wide, None, []
    weight = weight.astype(wide, copy=False)
    return wide, weight, [weight.reshape(-1, *(1,) * (rank - 2))]


cross_entropy = _declare_cross_entropy("cross_entropy", "NllLossBackward0")
cross_entropy2d = _declare_cross_entropy("cross_entropy2d", "NllLoss2DBackward0")
smoothed_cross_entropy = _declare_cross_entropy("smoothed_cross_entropy", "AddBackward0", None)
smoothed_cross_entropy.shows("alpha=1")  # torch adds two losses
