"""Softmax and its logarithm along one axis. Their backwards are operations of their own, as torch's: fewer passes."""

from __future__ import annotations

import numpy as np

from .._core import kernels, passes
from .._core.numpy_namespace import in_float32
from .._core.primitive import front, general
from .._thresholds import LARGE_SOFTMAX as MANY
from .cumulative import along_one_axis
from .reduce import is_small, sum_of_few

NEAR = 8  # the exponentials of numbers up to this far from 0 can be summed as they are


def _summed(xp, x, axis):
    """Sum along an axis; a number has none."""
    return xp.sum(x, axis=(axis,) if len(x.shape) else (), keepdims=True)


def _both_along(call, args, batched, size, *, axis):
    """Batch a backward: gradient and result along one axis; numbers have none, so each becomes a row of one."""
    return along_one_axis(
        call, [front(a, b, size) for a, b in zip(args, batched, strict=True)], batched, size, axis=axis
    )


def _shifted(xp, x, axis):
    """Return x - max(x) in memory of its own."""
    if x.ndim == 1:
        return x - x[x.argmax()]
    if xp.module is np:
        return x - np.maximum.reduce(x, axis, None, None, True)
    return x - x.max(axis, keepdims=True)


def _powers_of_few(x, axis):
    """Return exp(x) of few numbers near 0, which need no shift, and the sums along an axis; None for others."""
    if not is_small(x, (axis,)) or x.item(x.argmax()) >= NEAR or x.item(x.argmin()) <= -NEAR:
        return None
    powers = np.exp(x)
    totals = sum_of_few(powers, axis)
    return powers, totals[:, None] if axis else totals  # a row of them fits columns, or the only vector


def _strips(x, axis):
    """Return the slices of rows of a large matrix that stay in the processor's cache together; none if it is not one."""
    if type(x) is not np.ndarray or axis != x.ndim - 1 or x.ndim != 2 or not x.flags.c_contiguous:
        return ()
    count = max(1, 4 * kernels.BLOCK // x.shape[1])
    return [slice(at, at + count) for at in range(0, x.shape[0], count)]


def _are_moderate(x, top):
    """Tell whether the exponentials of rows with these maxima need no shift: none becomes subnormal, sums stay small."""
    return top.max() <= 8 and top.min() >= -8 and x.min() >= -80


def _row_sums(x):
    """Sum the rows of a matrix by BLAS."""
    return (x @ passes.ones(x.shape[1], x.dtype))[:, None]


# ---- softmax ----
@general(shows="dim result", dense=True, widens=True)
def softmax(xp, x, *, axis):
    """exp(x) / sum(exp(x)) along one axis, shifted by the maximum."""
    if not x.size or not x.ndim:
        return x - x + 1 if x.size else x.copy()
    if (few := _powers_of_few(x, axis)) is not None:
        weights, totals = few
        weights /= totals
        return weights
    module = xp.module
    if x.size >= MANY and (strips := _strips(x, axis)):
        weights = np.empty_like(x)
        for rows in strips:
            part, top = weights[rows], np.maximum.reduce(x[rows], 1, None, None, True)
            np.exp(x[rows] if _are_moderate(x[rows], top) else np.subtract(x[rows], top, out=part), out=part)
            part /= _row_sums(part)
        return weights
    weights = _shifted(xp, x, axis)
    module.exp(weights, weights)
    weights /= module.add.reduce(weights, axis=axis, keepdims=True)
    return weights


@softmax.vjp("x")
def softmax_dx(xp, g, out, axis):
    return xp.softmax_back(g, out, axis=axis)


softmax.jvp(lambda xp, t, out, axis: softmax_dx(xp, t, out, axis))  # the Jacobian is symmetric
softmax.batch(along_one_axis)


@in_float32
def _softmax_back(g, p, xp, axis):
    if not g.ndim:
        return (g - g * p) * p
    if p.size >= MANY and p.dtype == g.dtype and g.flags.c_contiguous and (strips := _strips(p, axis)):
        out = np.empty_like(p)
        for rows in strips:
            part = np.subtract(g[rows], np.vecdot(p[rows], g[rows])[:, None], out=out[rows])
            part *= p[rows]
        return out
    if xp.module is np and p.dtype == g.dtype:
        total = np.vecdot(p, g, axis=axis)[(*(slice(None),) * axis, None)]
    else:
        total = xp.sum(g * p, axis=(axis,), keepdims=True)
    out = g - total
    out *= p
    return out


@general(torch="softmax_backward_data")
def softmax_back(xp, g, p, *, axis):
    """(g - sum(g * p)) * p: the Jacobian of softmax, which is symmetric, times a vector."""
    return _softmax_back(g, p, xp, axis)


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
@general(shows="dim result", dense=True, widens=True)
def log_softmax(xp, x, *, axis):
    """x - logsumexp(x) along one axis."""
    if not x.size or not x.ndim:
        return x - x if x.size else x.copy()
    if (few := _powers_of_few(x, axis)) is not None:
        return x - np.log(few[1])
    if x.size >= MANY and (strips := _strips(x, axis)):
        out = np.empty_like(x)
        for rows in strips:
            part, top = out[rows], np.maximum.reduce(x[rows], 1, None, None, True)
            shifted = x[rows] if _are_moderate(x[rows], top) else np.subtract(x[rows], top, out=part)
            np.subtract(shifted, np.log(_row_sums(np.exp(shifted))), out=part)
        return out
    shifted = _shifted(xp, x, axis)
    shifted -= xp.module.log(xp.module.add.reduce(xp.module.exp(shifted), axis=axis, keepdims=True))
    return shifted


@log_softmax.vjp("x")
def log_softmax_dx(xp, g, out, axis):
    return xp.log_softmax_back(g, out, axis=axis)


@log_softmax.jvp
def log_softmax_jvp(xp, t, out, axis):
    return t - _summed(xp, xp.exp(out) * t, axis)


log_softmax.batch(along_one_axis)


@in_float32
def _log_softmax_back(g, q, xp, axis):
    if not g.ndim:
        return g - xp.module.exp(q) * g
    if q.size >= MANY and q.dtype == g.dtype and g.flags.c_contiguous and (strips := _strips(q, axis)):
        out = np.empty_like(q)
        for rows in strips:
            part = np.exp(q[rows], out=out[rows])
            part *= _row_sums(g[rows])
            np.subtract(g[rows], part, out=part)
        return out
    scaled = xp.module.exp(q)
    scaled *= xp.sum(g, axis=(axis,), keepdims=True)
    return xp.module.subtract(g, scaled, out=scaled)


@general(torch="log_softmax_backward_data")
def log_softmax_back(xp, g, q, *, axis):
    """g - exp(q) * sum(g)."""
    return _log_softmax_back(g, q, xp, axis)


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
