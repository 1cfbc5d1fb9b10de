"""Triangular systems: the primitive that most rules of linear algebra use."""

from __future__ import annotations

import math

from .._core import lapack
from .._core.primitive import aligned, general
from .matrices import adjoint

FEW = 8  # systems; from here on substitution for all of them at once beats a loop over BLAS calls
SMALL = 16  # rows; up to here


@general(torch="linalg_solve_triangular", shows="left result self=a unitriangular upper", batch=aligned)
def solve_triangular(xp, a, b, *, upper, left, unitriangular):
    """Solve a @ x = b, or x @ a = b where not `left`. Only one triangle of `a` is read; batches broadcast."""
    if a.ndim == 2 and b.ndim == 2 and b.size:
        return _solver(xp, a.dtype, upper, left, unitriangular)(a, b)
    lead = lapack.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not b.size or not a.size or 0 in lead:
        return xp.module.zeros((*lead, *b.shape[-2:]), b.dtype)
    count = math.prod(lead)
    if count > FEW and a.shape[-1] <= SMALL:
        return _substituted(xp, a, xp.module.broadcast_to(b, (*lead, *b.shape[-2:])), upper, left, unitriangular)
    solve = _solver(xp, a.dtype, upper, left, unitriangular)
    flat_a = xp.module.broadcast_to(a, (*lead, *a.shape[-2:])).reshape(count, *a.shape[-2:])
    flat_b = xp.module.broadcast_to(b, (*lead, *b.shape[-2:])).reshape(count, *b.shape[-2:])
    out = xp.module.empty((count, *b.shape[-2:]), b.dtype)
    for k in range(count):
        out[k] = solve(flat_a[k], flat_b[k])
    return out.reshape(*lead, *b.shape[-2:])


def _substituted(xp, a, b, upper, left, unitriangular):
    """Solve all systems of a batch row by row."""
    if not left:
        turned = _substituted(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unitriangular)
        return xp.module.ascontiguousarray(turned.swapaxes(-1, -2))
    n = a.shape[-1]
    out = xp.module.empty(b.shape, b.dtype)
    for i in reversed(range(n)) if upper else range(n):
        row = b[..., i, :]
        known = slice(i + 1, n) if upper else slice(0, i)
        if known.start < known.stop:
            row = row - (a[..., i, known, None] * out[..., known, :]).sum(-2)
        out[..., i, :] = row if unitriangular else row / a[..., i, i, None]
    return out


def _solver(xp, dtype, upper, left, unitriangular):
    """Return a function that solves one system."""
    if lapack.on_cpu(xp):
        trsm = lapack.trsm(dtype)
        # BLAS wants columns in memory, we have rows: it is given the transposed problem, without a copy
        side, lower = (1 if left else 0), (1 if upper else 0)
        return lambda a, b: trsm(1, a.T, b.T, side=side, lower=lower, diag=int(unitriangular)).T
    from cupyx.scipy.linalg import solve_triangular as solve

    if left:
        return lambda a, b: solve(a, b, lower=not upper, unit_diagonal=unitriangular)
    return lambda a, b: solve(a.T, b.T, lower=upper, unit_diagonal=unitriangular).T


@solve_triangular.vjp("a", "b")
def solve_triangular_vjp(xp, g, a, out, needed, upper, left, unitriangular, a_shape, b_shape):
    db = xp.solve_triangular(adjoint(xp, a), g, upper=not upper, left=left, unitriangular=unitriangular)
    da = None
    if needed[0]:
        product = xp.matmul(db, adjoint(xp, out)) if left else xp.matmul(adjoint(xp, out), db)
        da = _one_triangle(xp, xp.sum_to(-product, shape=a_shape), upper, unitriangular)
    return da, xp.sum_to(db, shape=b_shape) if needed[1] else None


def _one_triangle(xp, x, upper, unitriangular):
    inward = 1 if unitriangular else 0
    return xp.triangle(x, upper=upper, k=inward if upper else -inward)


@solve_triangular.jvp
def solve_triangular_jvp(xp, t, a, out, upper, left, unitriangular):
    ta, tb = t
    right = tb
    if ta is not None:
        ta = _one_triangle(xp, ta, upper, unitriangular)
        moved = -(xp.matmul(ta, out) if left else xp.matmul(out, ta))
        right = moved if tb is None else tb + moved
    found = xp.solve_triangular(a, right, upper=upper, left=left, unitriangular=unitriangular)
    return found
