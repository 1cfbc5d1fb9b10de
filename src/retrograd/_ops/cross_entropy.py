"""The negative log-likelihood of classes, from log-probabilities or from logits.

Note [Cross entropy by the target's logit]
The loss of a row of logits is log(s) with s the sum of exp(x - x[target]): one pass reads the logits, shifts them by the
target's instead of by the largest, and sums their powers; nothing of the logits' size is written. s is at least 1, and the
loss of a target that is nearly sure keeps its digits. Where a row's sum overflows, it is taken again from the largest logit.
The backward is exp(x - shift) * (scale / s), minus the scale at the target: it keeps two numbers for each row.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core import kernels, passes
from .._core.fused import fused
from .._core.shown import saved_array
from .._thresholds import LARGE_CROSS_ENTROPY as FEW
from .._thresholds import POWERS_KEPT as KEPT
from . import along, elementwise, reduce, softmax  # noqa: F401 - the words of the decompositions
from .losses import MEAN, NONE, SUM, reduced

INT64, UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


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


# ---- from logits. See Note [Cross entropy by the target's logit] ----
def _parts_of(x):
    """Return the index expressions of parts of a large stack that stay in the cache, and the axis of their classes."""
    budget = 4 * kernels.BLOCK
    if x.ndim == 2:
        count = max(1, budget // max(x.shape[1], 1))
        return [(slice(at, at + count),) for at in range(0, x.shape[0], count)], 1
    count = max(16, budget // max(x.shape[1], 1))
    return [(n, slice(None), slice(at, at + count)) for n in range(x.shape[0]) for at in range(0, x.shape[2], count)], 0


def _along_rows(parts_axis, part):
    """Return the part of an array of rows (without classes) that a part of the stack has."""
    return part if parts_axis else (part[0], part[2])


def _dot(m, powers, axis, factors=None):
    """Sum along the classes, each times its factor, by BLAS where rows or columns lie dense."""
    if m is not np:
        return (powers if factors is None else m.moveaxis(powers, axis, -1) * factors).sum(
            axis if factors is None else -1
        )
    if factors is None:
        if powers.ndim == 3:
            return np.add.reduce(powers, 1)
        factors = passes.ones(powers.shape[axis], powers.dtype)
    if powers.ndim == 3:
        return np.moveaxis(powers, 1, 2) @ factors
    return powers @ factors if axis else factors @ powers


def _with_classes(rows, axis):
    """Give an array of rows an axis of classes."""
    return rows[:, None] if axis else rows[None]


def _shifted_powers(m, x, shift, axis, out=None):
    powers = m.subtract(x, _with_classes(shift, axis), out=out)
    return m.exp(powers, out=powers)


def _powers(m, x, shift, axis, out=None):
    """Return exp(x - shift), its sums, and the shift, which is the largest logit where sums overflow."""
    powers = _shifted_powers(m, x, shift, axis, out)
    sums = _dot(m, powers, axis)
    if not m.isfinite(sums).all():
        shift = m.where(m.isfinite(sums), shift, x.max(axis))
        powers = _shifted_powers(m, x, shift, axis, out)
        sums = _dot(m, powers, axis)
    return powers, sums, shift


def _spread_loss(m, x, shift, logs, axis, smoothing, weight, space=None):
    """Return what the probability that is spread over all classes adds to the loss.

    `logs` are the logarithms of the sums of shifted powers. Logits are shifted, too: large ones would swallow the loss.
    """
    classes = x.shape[axis]
    share = smoothing / classes
    whole = classes if weight is None else weight.sum()
    shifted = m.subtract(x, _with_classes(shift, axis), space)
    return (logs * whole - _dot(m, shifted, axis, weight)) * x.dtype.type(share)


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
        if x.size <= FEW and weight is None and not smoothing and x.ndim == 2:
            few = None if 0 <= ignore_index < x.shape[1] else _losses_of_few(x, target, reduction)
            if few is not None:
                return few
        m = xp.module
        stack, named = as_stack(x, target)
        safe, counted = read_targets(xp, named, stack.shape[1], ignore_index)
        own, total = _weights(xp, safe, counted, weight, x.dtype)
        shift = first = stack[_named(xp, stack, safe)]
        powers = None
        if x.size <= KEPT or m is not np or not stack.flags.c_contiguous:
            powers, sums, shift = _powers(m, stack, shift, 1)
            values = m.log(sums)
            if smoothing:
                spread = _spread_loss(m, stack, shift, values, 1, smoothing, weight)
            if shift is not first:
                values += shift - first
        else:
            parts, axis = _parts_of(stack)
            shift, sums = first.copy(), np.empty_like(first)
            spread = np.empty_like(first) if smoothing else None
            buffer = np.empty(stack[parts[0]].shape, x.dtype) if parts else None
            for part in parts:
                rows, block = _along_rows(axis, part), stack[part]
                space = buffer[: block.shape[0], : block.shape[1]]
                _, sums[rows], shift[rows] = _powers(np, block, shift[rows], axis, space)
                if smoothing:
                    logs = np.log(sums[rows])
                    spread[rows] = _spread_loss(np, block, shift[rows], logs, axis, smoothing, weight, space)
            values = np.log(sums)
            values += shift - first
        if smoothing:
            values *= x.dtype.type(1 - smoothing)
            if own is not None:
                values *= own
            values += spread
            own_values, marks = (None, None) if counted is None else (counted, counted)
        else:
            own_values, marks = own, counted
        out = _finish(values, own_values, marks, total, reduction, x.shape[:1] * (x.ndim > 1) + x.shape[2:])
        return out, (safe, counted, own, total, shift, sums, powers)

    run.__name__ = name
    run.__doc__ = "The cross entropy of logits and classes. See Note [Cross entropy by the target's logit]."
    operation = fused(node_name, edges=edges)(run)
    operation.shows("ignore_index reduction target weight", self=_log_probabilities, total_weight=_total_weight)

    @operation.backward
    def back(xp, g, needed, residuals, x, target, weight, *, reduction, ignore_index, smoothing):
        if len(residuals) == 3:
            return _losses_of_few_back(g, *residuals, reduction), None, None
        m = xp.module
        safe, counted, own, total, shift, sums, powers = residuals
        g = g.reshape(safe.shape) if reduction == NONE else g
        one = _shared_scale(xp, g, own, counted, total, reduction)
        if smoothing:
            even = _shared_scale(xp, g, counted, counted, total, reduction) * x.dtype.type(smoothing / stack_classes(x))
            one = one * x.dtype.type(1 - smoothing)
            factor = one + even * (stack_classes(x) if weight is None else weight.sum())
        else:
            even, factor = None, one
        factor = factor / sums
        stack, _ = as_stack(x, target)
        if powers is not None:
            dx = powers * _with_classes(factor, 1)
            if smoothing:
                _subtract_spread(m, dx, even, weight, 1)
        else:
            dx = np.empty(stack.shape, x.dtype)
            even = np.broadcast_to(even, sums.shape) if smoothing else None
            parts, axis = _parts_of(stack)
            for part in parts:
                rows, block = _along_rows(axis, part), dx[part]
                _shifted_powers(np, stack[part], shift[rows], axis, block)
                block *= _with_classes(factor[rows], axis)
                if smoothing:
                    _subtract_spread(np, block, even[rows], weight, axis)
        dx[_named(xp, dx, safe)] -= one
        return dx.reshape(x.shape), None, None

    @operation.decomposition
    def parts(xp, x, target, weight, *, reduction, ignore_index, smoothing):
        q = xp.log_softmax(x, axis=class_axis(x))
        if smoothing:
            return smoothed_in_words(xp, q, target, weight, reduction, ignore_index, smoothing)
        return nll_in_words(xp, q, target, weight, reduction, ignore_index)

    _declare_batches(operation)
    return operation


def stack_classes(x):
    """Return the number of classes."""
    return x.shape[class_axis(x)]


def _subtract_spread(m, dx, even, weight, axis):
    """Subtract the share that every class has of a row's gradient, in place."""
    even = _with_classes(even, axis) if getattr(even, "ndim", 0) else even
    if weight is None:
        dx -= even
    else:
        dx -= even * weight.reshape(-1, *(1,) * (dx.ndim - axis - 1))


cross_entropy = _declare_cross_entropy("cross_entropy", "NllLossBackward0")
cross_entropy2d = _declare_cross_entropy("cross_entropy2d", "NllLoss2DBackward0")
smoothed_cross_entropy = _declare_cross_entropy("smoothed_cross_entropy", "AddBackward0", None)
smoothed_cross_entropy.shows("alpha=1")  # torch adds two losses
