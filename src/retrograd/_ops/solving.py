"""Linear systems and inverses, and triangular systems, which most rules of linear algebra solve."""

from __future__ import annotations

import math

from numpy import broadcast_shapes
from numpy.linalg import LinAlgError as SingularError

from .._core import lapack
from .._core.lapack import functions, one_by_one
from .._core.primitive import align_ranks, aligned, behind, general, vocabulary
from .matrices import adjoint, as_column, as_row, conjugate


def _forced(a, b):
    """Solve one system by LAPACK's two steps, which divide by zero where the matrix is singular, as torch does."""
    factorize, substitute = functions(a.dtype, "getrf", "getrs")
    packed, exchanges, _ = factorize(a)
    return (substitute(packed, exchanges, b)[0],)


def _solved(xp, a, b):
    module = xp.module
    try:
        return module.linalg.solve(a, b)
    except SingularError:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = module.broadcast_to(a, (*lead, *a.shape[-2:])), module.broadcast_to(b, (*lead, *b.shape[-2:]))
        return one_by_one(xp, _forced, a, b, ranks=(2, 2))[0]


@general(torch="linalg_solve_ex")
def solve(xp, a, b, *, left, vector):
    """Solve a @ x = b, or x @ a = b where not `left`. `vector`: b holds vectors, not matrices. Batches broadcast."""
    if vector:
        return _solved(xp, a, b[..., None])[..., 0]
    if left:
        return _solved(xp, a, b)
    return xp.module.ascontiguousarray(_solved(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2))


@solve.vjp("a", "b")
def solve_vjp(xp, g, a, out, needed, left, vector, a_shape, b_shape):
    db = xp.solve(adjoint(xp, a), g, left=left, vector=vector)
    da = None
    if needed[0]:
        if vector:
            product = as_column(xp, db) * as_row(xp, conjugate(xp, out))
        else:
            product = xp.matmul(db, adjoint(xp, out)) if left else xp.matmul(adjoint(xp, out), db)
        da = xp.sum_to(-product, shape=a_shape)
    return da, xp.sum_to(db, shape=b_shape) if needed[1] else None


@solve.jvp
def solve_jvp(xp, t, a, out, left, vector):
    ta, tb = t
    right = tb
    if ta is not None:
        if vector:
            moved = xp.squeeze(xp.matmul(ta, as_column(xp, out)), axis=len(out.shape))
        else:
            moved = xp.matmul(ta, out) if left else xp.matmul(out, ta)
        right = -moved if tb is None else tb - moved
    return xp.solve(a, right, left=left, vector=vector)


@solve.batch
def solve_batch(call, args, batched, size, *, left, vector):
    a, b = args
    if not vector:
        return call(*align_ranks((a, b), batched), left=left, vector=False)
    a, b = align_ranks((a, vocabulary.expand_dims(b, axis=b.ndim)), batched)
    out = call(a, b, left=True, vector=False)
    return vocabulary.squeeze(out, axis=out.ndim - 1)


@general(torch="linalg_inv_ex", batch=behind)
def inv(xp, x):
    try:
        return xp.module.linalg.inv(x)
    except SingularError:
        return _solved(xp, x, xp.module.eye(x.shape[-1], dtype=x.dtype))


@inv.vjp("x")
def inv_dx(xp, g, out):
    turned = adjoint(xp, out)
    return -xp.matmul(turned, xp.matmul(g, turned))


@inv.jvp
def inv_jvp(xp, t, out):
    return -xp.matmul(out, xp.matmul(t, out))


@general(differentiable=False, batch=behind)
def singular_at(xp, x):
    """Return where elimination meets a zero, counted from 1, or 0 where it does not."""
    if not x.size:
        return xp.module.zeros(x.shape[:-2], "int32")
    (factorize,) = functions(x.dtype, "getrf")
    return one_by_one(xp, lambda a: (factorize(a)[2],), x, ranks=(2,))[0].astype("int32")


# ---- triangular systems ----
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
