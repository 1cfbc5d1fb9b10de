"""Variance and standard deviation: how spread the numbers along some axes are."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import is_half, numpy_namespace
from .._core.primitive import behind, general
from .._native.program import NATIVE, formula
from .order import dense
from .reduce import _restore, is_small, mean_dx, sum_of_few

WIDE = np.dtype(np.float64)


# ---- large arrays ----
@formula(numbers=("count", "freedom"))
def _moments(xp, x, *, axis, count, freedom, root):
    """Return variance, or its root, and mean along axes, which stay. Squares may overflow where their root does not: all is float64."""
    wide = xp.astype(x, dtype=WIDE)
    mean = xp.sum(wide, axis=axis, keepdims=True) / count
    away = wide - mean
    spread = xp.sum(away * away, axis=axis, keepdims=True) / freedom
    if root:
        spread = xp.sqrt(spread)
    return xp.astype(spread, dtype=x.dtype), xp.astype(mean, dtype=x.dtype)


def _is_large(x):
    return type(x) is np.ndarray and x.size >= NATIVE and (x.dtype.kind == "f" or is_half(x.dtype))


def _of_many(x, axis, correction, keepdims, root):
    """Return variances, or their roots, and means of a large array."""
    count, freedom = _count(x.shape, axis), _freedom(x.shape, axis, correction)
    both = _moments(numpy_namespace, x, axis=tuple(axis), count=count, freedom=freedom, root=root)
    return both if keepdims else tuple([part.squeeze(axis) for part in both])


# ---- variance ----
def _count(shape, axis):
    count = 1
    for a in axis:
        count *= shape[a]
    return count


def _freedom(shape, axis, correction):
    return max(_count(shape, axis) - correction, 0)


def _centred(xp, x, axis):
    return x - xp.mean(x, axis=axis, keepdims=True)


def _sum_of_squares(xp, x, axis, keepdims):
    """Sum |x| ** 2 of an array that may be overwritten."""
    if not x.ndim:
        return xp.real(x * xp.conj(x))
    if x.ndim == 1 and x.dtype.kind == "f" and not keepdims and axis and xp.module is np:
        return x.dot(x)
    if xp.module is np and len(axis) == 1 and x.size < NATIVE:
        total = np.vecdot(x, x, axis=axis[0]).real
        return np.expand_dims(total, axis) if keepdims else total
    if x.dtype.kind == "c":
        return xp.sum(x.real * x.real, axis=axis, keepdims=keepdims) + xp.sum(
            x.imag * x.imag, axis=axis, keepdims=keepdims
        )
    return xp.sum(xp.module.multiply(x, x, out=x), axis=axis, keepdims=keepdims)


@lru_cache(maxsize=256)
def _divisor(count, dtype):
    return np.array([count], dtype)  # NumPy takes longer to read a Python number


def _variances_of_few(x, axis, correction):
    """Return the variances of the rows or columns of a small matrix, and their means; None for others."""
    if x.ndim != 2 or not is_small(x, axis) or not x.size:
        return None
    (a,) = axis
    dtype, count = x.dtype, x.shape[a]
    mean = sum_of_few(x, a) / _divisor(count, dtype)
    away = x - (mean[:, None] if a else mean)
    away *= away
    return sum_of_few(away, a) / _divisor(max(count - correction, 0), dtype), mean


@general(batch=behind, dense=True, widens=True)
def var(xp, x, *, axis, correction, keepdims):
    """The mean square distance from the mean, with `correction` degrees of freedom taken off."""
    if _is_large(x):
        return _of_many(x, axis, correction, keepdims, False)[0]
    if not keepdims and (few := _variances_of_few(x, axis, correction)) is not None:
        return few[0]
    total = _sum_of_squares(xp, _centred(xp, x, axis), axis, keepdims)
    return total / _freedom(x.shape, axis, correction)  # no freedom: nan or inf


def _per_freedom(shape, axis, correction):
    freedom = _freedom(shape, axis, correction)
    return 2 / freedom if freedom else float("nan")


def _var_slope(xp, g, x, axis, correction):
    """Scale the distances from the mean by a gradient, or whatever else stands for each variance."""
    return g * _per_freedom(x.shape, axis, correction) * _centred(xp, x, axis)


@var.vjp("x")
def var_dx(xp, g, x, axis, correction, keepdims):
    return _var_slope(xp, _restore(xp, g, axis, keepdims), x, axis, correction)


@var.jvp
def var_jvp(xp, t, x, axis, correction, keepdims):
    return xp.sum(xp.real(xp.conj(_var_slope(xp, 1, x, axis, correction)) * t), axis=axis, keepdims=keepdims)


@general(batch=behind, dense=True, widens=True)
def std(xp, x, *, axis, correction, keepdims):
    """The square root of the variance."""
    if _is_large(x):
        return _of_many(x, axis, correction, keepdims, True)[0]
    if not keepdims and (few := _variances_of_few(x, axis, correction)) is not None:
        return np.sqrt(few[0])
    out = xp.sqrt(xp.var(x, axis=axis, correction=correction, keepdims=keepdims))
    if x.dtype == "float32" and out.size and not xp.is_meta and not (out.max() if out.ndim else out) < math.inf:
        # squares may overflow where their root does not: torch adds them up in float64
        wide = xp.var(x.astype("float64"), axis=axis, correction=correction, keepdims=keepdims)
        return xp.sqrt(wide).astype("float32")
    return out


def _half_over(xp, out):
    # 0 where all numbers are equal, as torch
    zero = xp.equal(out, 0)
    return xp.where(zero, 0, 0.5 / xp.where(zero, 1, out))


@std.vjp("x")
def std_dx(xp, g, x, out, axis, correction, keepdims):
    return var_dx(xp, g * _half_over(xp, out), x, axis, correction, keepdims)


@std.jvp
def std_jvp(xp, t, x, out, axis, correction, keepdims):
    return var_jvp(xp, t, x, axis, correction, keepdims) * _half_over(xp, out)


# ---- together with the mean ----
def _with_mean(name):
    """Declare var_mean or std_mean."""

    def run(xp, x, *, axis, correction, keepdims):
        if _is_large(x):
            return _of_many(x, axis, correction, keepdims, name == "std")
        if not keepdims and (few := _variances_of_few(x, axis, correction)) is not None:
            return (np.sqrt(few[0]), few[1]) if name == "std" else few
        half = is_half(x.dtype)
        wide = x.astype(np.float32) if half else x
        mean = xp.mean(wide, axis=axis, keepdims=True)
        spread = _sum_of_squares(xp, wide - mean, axis, keepdims) / _freedom(x.shape, axis, correction)
        both = xp.module.sqrt(spread) if name == "std" else spread, mean if keepdims else mean.squeeze(axis)
        return tuple(part.astype(x.dtype, "C") for part in both) if half else dense(*both)

    primitive = general(run, name=f"{name}_mean", outputs=2)

    def slope(xp, g, weight, x, axis, correction, keepdims):
        total = None if g[1] is None else mean_dx(xp, g[1], tuple(x.shape), axis, keepdims)
        if weight is None:
            return total
        part = var_dx(xp, weight, x, axis, correction, keepdims)
        return part if total is None else part + total

    if name == "std":

        @primitive.vjp("x")
        def dx(xp, g, x, out, axis, correction, keepdims):
            weight = None if g[0] is None else g[0] * _half_over(xp, out[0])
            return slope(xp, g, weight, x, axis, correction, keepdims)

    else:

        @primitive.vjp("x")
        def dx(xp, g, x, axis, correction, keepdims):
            return slope(xp, g, g[0], x, axis, correction, keepdims)

    @primitive.jvp
    def jvp(xp, t, x, out, axis, correction, keepdims):
        moved = var_jvp(xp, t, x, axis, correction, keepdims)
        if name == "std":
            moved = moved * _half_over(xp, out[0])
        return moved, xp.mean(t, axis=axis, keepdims=keepdims)

    primitive.batch(behind)
    return primitive


var_mean, std_mean = _with_mean("var"), _with_mean("std")
