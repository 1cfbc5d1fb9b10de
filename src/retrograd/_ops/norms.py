"""Norms, and distances between rows."""

from __future__ import annotations

import math

from numpy import broadcast_shapes, ndindex

from .._core.numpy_namespace import SINGLE, cast, is_half, numpy_namespace
from .._core.primitive import aligned, behind, general
from .._native.program import NATIVE, formula
from .._native.reductions import without
from .matrices import as_column
from .reduce import _restore

INFINITE = (math.inf, -math.inf)
FEW = 4096  # differences, of which an array is made sooner than SciPy checks its arguments


# ---- norms of vectors ----
def _two_norm(xp, x, axis, keepdims):
    module = xp.module
    if is_half(x.dtype):
        x = x.astype(SINGLE)
    if len(axis) == x.ndim and not keepdims and x.dtype.kind == "f" and x.flags.c_contiguous:
        flat = x.reshape(-1)
        return module.sqrt(flat.dot(flat))
    if len(axis) == 1 and xp is numpy_namespace and x.ndim:
        total = module.vecdot(x, x, axis=axis[0])
        return module.sqrt(module.expand_dims(total.real, axis) if keepdims else total.real)
    squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return module.sqrt(module.add.reduce(squares, axis=axis, keepdims=keepdims))


@formula(wide=(0,))
def _powers(xp, x, *, p, axis):
    """Sum |x| ** p, or find the extremes of |x| for the infinities."""
    if p == 2:
        return xp.sum(x * x, axis=axis, keepdims=True)
    if p == 0:
        return xp.sum(xp.astype(x != 0, dtype=x.dtype), axis=axis, keepdims=True)
    size = xp.abs(x)
    if p in INFINITE:
        return (xp.max if p > 0 else xp.min)(size, axis=axis, keepdims=True)
    return xp.sum(size if p == 1 else xp.power_by(size, p), axis=axis, keepdims=True)


@general(torch="linalg_vector_norm", batch=behind, widens=True, reads_halves=True)
def norm(xp, x, *, p, axis, keepdims):
    """sum(|x| ** p) ** (1 / p); the number of nonzeros for 0, an extreme for the infinities."""
    if p == 2 and (x.size < NATIVE or x.dtype.kind == "c"):
        return _two_norm(xp, x, axis, keepdims)
    if x.dtype.kind == "c":
        x = xp.abs(x)
    total = without(_powers(xp, x, p=p, axis=axis), axis, keepdims)
    if p == 2:
        return xp.module.sqrt(total)
    # a zero to a negative power is infinite, and its root zero
    return total if p in (0, 1, *INFINITE) else xp.power(total, 1 / p)


@formula
def _pulled_two(xp, x, full, g):
    return xp.where(xp.equal(full, 0), 0, x / full) * g


def _pulled(xp, g, x, full, p, axis):
    """Return the gradient of each norm, which `full` holds with its axes, times g.

    Zeros where there is none, and NaN in second order there: the terms are torch's.
    """
    plain = xp is numpy_namespace
    half = plain and is_half(x.dtype)
    if half and p != 2:
        x, full, g = (cast(a, SINGLE) for a in (x, full, g))
    if p == 1:
        return xp.sgn(x) * g
    if p == 2:
        one_kernel = half or (plain and x.size >= NATIVE and x.dtype == full.dtype == g.dtype)
        return (_pulled_two if one_kernel else _pulled_two.formula)(xp, x, full, g)
    size = xp.abs(x)
    if p in INFINITE:  # ties share; a NaN equals nothing
        chosen = xp.logical_or(xp.equal(size, full), xp.logical_and(xp.isnan(size), xp.isnan(full)))
        count = xp.sum(xp.astype(chosen, dtype=full.dtype), axis=axis, keepdims=True)
        return xp.sgn(x) * xp.where(chosen, g / count, 0)
    if p < 1:
        slopes = xp.where(xp.equal(size, 0), 0, xp.sgn(x) * xp.power_scalar(size, exponent=p - 1))
        return slopes * (g * xp.power_scalar(full, exponent=1 - p))
    slopes = x * xp.power_scalar(size, exponent=p - 2) if p > 2 else xp.sgn(x) * xp.power_scalar(size, exponent=p - 1)
    return slopes * xp.where(xp.equal(full, 0), 0, g / xp.power_scalar(full, exponent=p - 1))


@norm.vjp("x")
def norm_dx(xp, g, x, out, p, axis, keepdims):
    if p == 0:
        return None
    return _pulled(xp, _restore(xp, g, axis, keepdims), x, _restore(xp, out, axis, keepdims), p, axis)


@norm.jvp
def norm_jvp(xp, t, x, out, p, axis, keepdims):
    if p == 0:
        return xp.zeros_like(out)
    full = _restore(xp, out, axis, keepdims)
    half = xp is numpy_namespace and is_half(x.dtype)
    if half:
        t, x, full = (cast(a, SINGLE) for a in (t, x, full))
    slope = _pulled(xp, xp.ones_like(full), x, full, p, axis)
    total = xp.sum(xp.real(xp.conj(slope) * t), axis=axis, keepdims=keepdims)
    return cast(total, out.dtype) if half else total


# ---- distances ----
METRICS = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}


def _by_products(xp, x, y):
    """Euclidean distances from inner products: quicker for many rows, and less exact."""
    rows, columns = (x * x).sum(axis=-1)[..., :, None], (y * y).sum(axis=-1)[..., None, :]
    return xp.module.sqrt(xp.module.maximum(rows + columns - 2 * (x @ y.swapaxes(-1, -2)), 0))


def _one_by_one(xp, x, y, p):
    """Distances in C, without an array of all differences."""
    from scipy.spatial.distance import cdist as compiled

    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    out = xp.module.empty((*lead, x.shape[-2], y.shape[-2]), x.dtype)
    x, y = (xp.module.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (x, y))
    for at in ndindex(*lead):
        metric = METRICS.get(p)
        out[at] = compiled(x[at], y[at], metric) if metric else compiled(x[at], y[at], "minkowski", p=p)
    return out


@general(torch="cdist", shows="p result x1=x x2=y", batch=aligned)
def cdist(xp, x, y, *, p, products):
    """The p-norm of the difference of every row of x and every row of y; `products`: see `_by_products`."""
    if products:
        return _by_products(xp, x, y)
    if xp is numpy_namespace and p and x.size * y.shape[-2] > FEW and y.size:
        return _one_by_one(xp, x, y, p)
    gaps = x[..., :, None, :] - y[..., None, :, :]
    if not x.shape[-1]:
        return xp.module.zeros(gaps.shape[:-1], x.dtype)
    return xp.norm(gaps, p=p, axis=(gaps.ndim - 1,), keepdims=False)


def _distance_slopes(xp, x, y, out, p):
    """Return the slopes of each distance in the difference of its rows."""
    gaps = xp.expand_dims(x, axis=len(x.shape) - 1) - xp.expand_dims(y, axis=len(y.shape) - 2)
    full = as_column(xp, out)
    if p == math.inf:  # every difference as large as the distance counts in full, as torch
        return xp.where(xp.equal(xp.abs(gaps), full), xp.sgn(gaps), 0)
    if p == 0:
        return xp.zeros_like(gaps)
    if p == 1:
        return xp.sgn(gaps)
    # no division by the distance of a row to itself, also in second order, which torch lacks
    size, none = xp.abs(gaps), xp.equal(full, 0)
    flat = xp.logical_or(none, xp.equal(size, 0))
    ratio = xp.where(flat, 1, size) / xp.where(none, 1, full)
    return xp.where(flat, 0, xp.sgn(gaps) * xp.power_scalar(ratio, exponent=p - 1))


@cdist.vjp("x", "y")
def cdist_vjp(xp, g, x, y, out, p, x_shape, y_shape, needed):
    rank = len(out.shape)
    if p == 2:
        none = xp.equal(out, 0)
        weights = xp.where(none, 0, g / xp.where(none, 1, out))
        turned = xp.permute_dims(weights, axes=(*range(rank - 2), rank - 1, rank - 2))
        dx = x * xp.sum(weights, axis=(rank - 1,), keepdims=True) - xp.matmul(weights, y) if needed[0] else None
        dy = y * xp.sum(turned, axis=(rank - 1,), keepdims=True) - xp.matmul(turned, x) if needed[1] else None
    else:
        pulled = as_column(xp, g) * _distance_slopes(xp, x, y, out, p)
        dx = xp.sum(pulled, axis=(rank - 1,), keepdims=False)
        dy = -xp.sum(pulled, axis=(rank - 2,), keepdims=False)
    return (
        xp.sum_to(dx, shape=x_shape) if needed[0] else None,
        xp.sum_to(dy, shape=y_shape) if needed[1] else None,
    )


@cdist.jvp
def cdist_jvp(xp, t, x, y, out, p):
    tx, ty = t
    slopes = _distance_slopes(xp, x, y, out, p)
    moved = None if tx is None else xp.expand_dims(tx, axis=len(tx.shape) - 1)
    if ty is not None:
        back = xp.expand_dims(ty, axis=len(ty.shape) - 2)
        moved = -back if moved is None else moved - back
    return xp.sum(slopes * moved, axis=(len(out.shape),), keepdims=False)
