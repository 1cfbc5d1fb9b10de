"""Softmax and its logarithm along one axis. Their backwards are operations of their own, as torch's: fewer passes."""

from __future__ import annotations

import numpy as np

from .._core.primitive import front, general
from .._native.program import NATIVE, formula
from .cumulative import along_one_axis
from .reduce import sum_of_few

NEAR = 8  # the exponentials of numbers up to this far from 0 can be summed as they are


def _summed(xp, x, axis):
    """Sum along an axis; a number has none."""
    return xp.sum(x, axis=(axis,) if len(x.shape) else (), keepdims=True)


def _both_along(call, args, batched, size, *, axis):
    """Batch a backward: gradient and result along one axis; numbers have none, so each becomes a row of one."""
    return along_one_axis(
        call, [front(a, b, size) for a, b in zip(args, batched, strict=True)], batched, size, axis=axis
    )


def _powers(x, axis):
    """Return exp(x) of numbers near 0, which need no shift, and their sums along an axis; None for others."""
    last = axis == x.ndim - 1
    if type(x) is not np.ndarray or (not last and x.ndim > 2):
        return None
    if x.dtype.char not in "fd" or not (x.item(x.argmin()) > -NEAR and x.item(x.argmax()) < NEAR):  # or NaN
        return None
    powers = np.exp(x)
    totals = sum_of_few(powers, axis)
    return powers, totals[..., None] if last and axis else totals


def _shifted(xp, x, axis):
    """Return x - max(x) in memory of its own."""
    if xp.module is not np:
        return x - xp.max(x, axis=(axis,), keepdims=True)
    if x.ndim == 1:
        return x - x[x.argmax()]
    return x - np.maximum.reduce(x, axis, None, None, True)


# ---- softmax ----
@general(shows="dim result", dense=True)
def softmax(xp, x, *, axis):
    """exp(x) / sum(exp(x)) along one axis."""
    if not x.size or not x.ndim:  # of nothing torch takes integers and truth values, too
        return x - x + 1 if x.size else x.copy()
    if x.size < NATIVE and (near := _powers(x, axis)) is not None:
        weights, totals = near
        weights /= totals
        return weights
    return _softmax(xp, x, axis=axis)


@formula
def _softmax(xp, x, *, axis):
    """exp(x) / sum(exp(x)) along one axis, shifted by the maximum."""
    weights = _shifted(xp, x, axis)
    if xp.module is np:  # in the same memory
        np.exp(weights, weights)
        weights /= np.add.reduce(weights, axis, None, None, True)
        return weights
    weights = xp.exp(weights)
    weights *= 1 / xp.sum(weights, axis=(axis,), keepdims=True)
    return weights


@softmax.vjp("x")
def softmax_dx(xp, g, out, axis):
    return xp.softmax_back(g, out, axis=axis)


softmax.jvp(lambda xp, t, out, axis: softmax_dx(xp, t, out, axis))  # the Jacobian is symmetric
softmax.batch(along_one_axis)


@general(torch="softmax_backward_data")
@formula
def softmax_back(xp, g, p, *, axis):
    """(g - sum(g * p)) * p: the Jacobian of softmax, which is symmetric, times a vector."""
    if not g.ndim:
        return (g - g * p) * p
    if xp.module is np and p.dtype == g.dtype:
        total = np.vecdot(p, g, axis=axis)[(*(slice(None),) * axis, None)]
    else:
        total = xp.sum(g * p, axis=(axis,), keepdims=True)
    out = g - total
    out *= p
    return out


softmax_back.vjp("g")(lambda xp, g, p, axis: xp.softmax_back(g, p, axis=axis))


@softmax_back.vjp("p")
def softmax_back_dp(xp, gradient, g, p, axis):
    return gradient * (g - _summed(xp, g * p, axis)) - g * _summed(xp, gradient * p, axis)


@softmax_back.jvp
def softmax_back_jvp(xp, t, g, p, axis):
    tg, tp = t
    total = None if tg is None else xp.softmax_back(tg, p, axis=axis)
    if tp is not None:
        moved = tp * (g - _summed(xp, g * p, axis)) - p * _summed(xp, g * tp, axis)
        total = moved if total is None else total + moved
    return total


softmax_back.batch(_both_along)


# ---- its logarithm ----
@general(shows="dim result", dense=True)
def log_softmax(xp, x, *, axis):
    """x - logsumexp(x) along one axis."""
    if not x.size or not x.ndim:
        return x - x if x.size else x.copy()
    if x.size < NATIVE and (near := _powers(x, axis)) is not None:
        return x - np.log(near[1])
    return _log_softmax(xp, x, axis=axis)


@formula
def _log_softmax(xp, x, *, axis):
    """x - logsumexp(x) along one axis, shifted by the maximum."""
    shifted = _shifted(xp, x, axis)
    if xp.module is np:
        shifted -= np.log(np.add.reduce(np.exp(shifted), axis, None, None, True))
    else:
        shifted -= xp.log(xp.sum(xp.exp(shifted), axis=(axis,), keepdims=True))
    return shifted


@log_softmax.vjp("x")
def log_softmax_dx(xp, g, out, axis):
    return xp.log_softmax_back(g, out, axis=axis)


@log_softmax.jvp
def log_softmax_jvp(xp, t, out, axis):
    return t - _summed(xp, xp.exp(out) * t, axis)


log_softmax.batch(along_one_axis)


@general(torch="log_softmax_backward_data")
@formula
def log_softmax_back(xp, g, q, *, axis):
    """g - exp(q) * sum(g)."""
    scaled = xp.exp(q)
    scaled *= xp.sum(g, axis=(axis,), keepdims=True) if g.ndim else g
    return g - scaled


@log_softmax_back.vjp("g")
def log_softmax_back_dg(xp, g, q, axis):
    return g - _summed(xp, xp.exp(q) * g, axis)


@log_softmax_back.vjp("q")
def log_softmax_back_dq(xp, gradient, g, q, axis):
    return -(gradient * xp.exp(q) * _summed(xp, g, axis))


@log_softmax_back.jvp
def log_softmax_back_jvp(xp, t, g, q, axis):
    tg, tq = t
    total = None if tg is None else xp.log_softmax_back(tg, q, axis=axis)
    if tq is not None:
        moved = -(tq * xp.exp(q) * _summed(xp, g, axis))
        total = moved if total is None else total + moved
    return total


log_softmax_back.batch(_both_along)
