"""Norms, variance and standard deviation: how large and how spread the numbers along some axes are."""

from __future__ import annotations

import math

from .._core.primitive import general
from .reduce import _restore, _shifted


def _move_axes(call, args, batched, size, *, axis, **params):
    return call(args[0], axis=_shifted(axis), **params)


@general
def norm(xp, x, *, p, axis, keepdims):
    """sum(|x| ** p) ** (1 / p); the number of nonzeros for 0, an extreme for the infinities."""
    size = xp.abs(x)
    if p == 0:
        return xp.sum(xp.not_equal(size, 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if p in (math.inf, -math.inf):
        return (xp.max if p > 0 else xp.min)(size, axis=axis, keepdims=keepdims)
    if p == 1:
        return xp.sum(size, axis=axis, keepdims=keepdims)
    total = xp.sum(size * size if p == 2 else xp.power(size, p), axis=axis, keepdims=keepdims)
    return xp.sqrt(total) if p == 2 else xp.power(total, 1 / p)


def _norm_slope(xp, x, out, p, axis, keepdims):
    """Return the gradient of each norm; 0 where there is none, as torch's subgradient."""
    if p == 0:
        return xp.zeros_like(x)
    if p == 1:
        return xp.sgn(x)
    full = _restore(xp, out, axis, keepdims)
    size = xp.abs(x)
    if p in (math.inf, -math.inf):  # ties share
        chosen = xp.equal(size, full)
        count = xp.sum(xp.astype(chosen, dtype=out.dtype), axis=axis, keepdims=True)
        return xp.sgn(x) * xp.where(chosen, 1 / count, 0)
    none = xp.equal(full, 0)
    if p == 2:
        return xp.where(none, xp.zeros_like(x), x / xp.where(none, xp.ones_like(full), full))
    flat = xp.logical_or(none, xp.equal(size, 0))
    ratio = xp.where(flat, 1, size) / xp.where(none, 1, full)
    return xp.sgn(x) * xp.power_scalar(ratio, exponent=p - 1)


@norm.vjp("x")
def norm_dx(xp, g, x, out, p, axis, keepdims):
    return _restore(xp, g, axis, keepdims) * _norm_slope(xp, x, out, p, axis, keepdims)


@norm.jvp
def norm_jvp(xp, t, x, out, p, axis, keepdims):
    slope = _norm_slope(xp, x, out, p, axis, keepdims)
    return xp.sum(xp.real(xp.conj(slope) * t), axis=axis, keepdims=keepdims)


norm.batch(_move_axes)


# ---- variance ----
def _freedom(shape, axis, correction):
    count = 1
    for a in axis:
        count *= shape[a]
    return max(count - correction, 0)


def _centred(xp, x, axis):
    return x - xp.mean(x, axis=axis, keepdims=True)


@general
def var(xp, x, *, axis, correction, keepdims):
    """The mean square distance from the mean, with `correction` degrees of freedom taken off."""
    size = xp.abs(_centred(xp, x, axis))
    freedom = xp.module.asarray(_freedom(x.shape, axis, correction), size.dtype)
    return xp.sum(size * size, axis=axis, keepdims=keepdims) / freedom  # no freedom: nan or inf


def _var_slope(xp, x, axis, correction):
    freedom = _freedom(x.shape, axis, correction)
    return _centred(xp, x, axis) * (2 / freedom if freedom else float("nan"))


@var.vjp("x")
def var_dx(xp, g, x, axis, correction, keepdims):
    return _restore(xp, g, axis, keepdims) * _var_slope(xp, x, axis, correction)


@var.jvp
def var_jvp(xp, t, x, axis, correction, keepdims):
    return xp.sum(xp.real(xp.conj(_var_slope(xp, x, axis, correction)) * t), axis=axis, keepdims=keepdims)


var.batch(_move_axes)


@general
def std(xp, x, *, axis, correction, keepdims):
    """The square root of the variance."""
    return xp.sqrt(xp.var(x, axis=axis, correction=correction, keepdims=keepdims))


def _half_over(xp, out):
    # 0 where all numbers are equal, as torch
    zero = xp.equal(out, 0)
    return xp.where(zero, 0, 0.5 / xp.where(zero, 1, out))


@std.vjp("x")
def std_dx(xp, g, x, out, axis, correction, keepdims):
    return _restore(xp, g * _half_over(xp, out), axis, keepdims) * _var_slope(xp, x, axis, correction)


@std.jvp
def std_jvp(xp, t, x, out, axis, correction, keepdims):
    return var_jvp(xp, t, x, axis, correction, keepdims) * _half_over(xp, out)


std.batch(_move_axes)
