"""Products of Householder reflectors: the Q that `geqrf` leaves in pieces.

The product H_1 ... H_k of H_i = I - tau_i v_i v_i^H is I - V D S^-1 V^H, where the columns of V are the v_i, D = diag(tau)
and S = I + N D with N the part of V^H V above the diagonal. S is triangular with ones on its diagonal, so this holds for
any tau, zeros included, and everything is products of matrices and one triangular solve, for whole batches.
"""

from __future__ import annotations

from .._core import lapack
from .._core.primitive import behind, general, unmoved
from . import solving  # noqa: F401 - the rules solve with triangles
from .matrices import adjoint, as_column, as_row, columns, conjugate, diagonal_matrix, identity_like

SOLVE = {"left": True, "unitriangular": True}


def _vectors(xp, x, count):
    """Return V: below the diagonal what is stored, above it zeros, ones on it."""
    x = columns(xp, x, 0, count) if x.shape[-1] > count else x
    return xp.triangle(x, upper=False, k=-1) + identity_like(xp, x)


def _pieces(xp, x, tau):
    """Return V, N and N D (of which the solver reads what is above the diagonal)."""
    v = _vectors(xp, x, tau.shape[-1])
    n = xp.triangle(xp.matmul(adjoint(xp, v), v), upper=True, k=1)
    return v, n, n * as_row(xp, tau)


def _applied(xp, v, s, tau, c, adjoint_):
    """Return Q @ c, or Q^H @ c."""
    product = xp.matmul(adjoint(xp, v), c)
    if adjoint_:
        inner = xp.solve_triangular(adjoint(xp, s), as_column(xp, conjugate(xp, tau)) * product, upper=False, **SOLVE)
    else:
        inner = as_column(xp, tau) * xp.solve_triangular(s, product, upper=True, **SOLVE)
    return c - xp.matmul(v, inner)


def _pulled_back(xp, g, x, tau, c, needed):
    """Return the gradients of x, tau and c for Q @ c."""
    v, n, s = _pieces(xp, x, tau)
    back = adjoint(xp, v)
    solved = xp.solve_triangular(s, xp.matmul(back, c), upper=True, **SOLVE)
    conj_tau = conjugate(xp, tau)
    inner = -xp.matmul(back, g)
    g_solved = xp.solve_triangular(adjoint(xp, s), as_column(xp, conj_tau) * inner, upper=False, **SOLVE)
    gc = g + xp.matmul(v, g_solved) if needed[2] else None
    g_s = xp.triangle(-xp.matmul(g_solved, adjoint(xp, solved)), upper=True, k=1)
    last = len(tau.shape)
    gtau = None
    if needed[1]:
        gtau = xp.sum(conjugate(xp, solved) * inner, axis=(last,), keepdims=False)
        gtau = gtau + xp.sum(conjugate(xp, n) * g_s, axis=(last - 1,), keepdims=False)
    gx = None
    if needed[0]:
        g_n = g_s * as_row(xp, conj_tau)
        gx = xp.matmul(c, adjoint(xp, g_solved)) + xp.matmul(v, g_n + adjoint(xp, g_n))
        gx = xp.triangle(gx - xp.matmul(g, adjoint(xp, as_column(xp, tau) * solved)), upper=False, k=-1)
        gx = _with_columns_of(xp, gx, x)
    return gx, gtau, gc


def _with_columns_of(xp, gx, x):
    """Add the columns that hold no reflectors."""
    count, n = gx.shape[-1], x.shape[-1]
    if count == n:
        return gx
    return xp.concat(gx, xp.zeros_like(columns(xp, x, count, n)), axis=len(x.shape) - 1)


def _pushed(xp, tx, ttau, tc, x, tau, c):
    """Return the tangent of Q @ c."""
    v, n, s = _pieces(xp, x, tau)
    back = adjoint(xp, v)
    solved = xp.solve_triangular(s, xp.matmul(back, c), upper=True, **SOLVE)
    right = None if tc is None else xp.matmul(back, tc)  # of S @ solved = V^H c
    t_s = None if ttau is None else n * as_row(xp, ttau)
    tv = None
    if tx is not None:
        count = tau.shape[-1]
        tv = xp.triangle(columns(xp, tx, 0, count) if tx.shape[-1] > count else tx, upper=False, k=-1)
        product = xp.matmul(adjoint(xp, tv), v)
        t_n = xp.triangle(product + adjoint(xp, product), upper=True, k=1) * as_row(xp, tau)
        t_s = t_n if t_s is None else t_s + t_n
        moved = xp.matmul(adjoint(xp, tv), c)
        right = moved if right is None else right + moved
    if t_s is not None:
        moved = -xp.matmul(t_s, solved)
        right = moved if right is None else right + moved
    inner = as_column(xp, tau) * xp.solve_triangular(s, right, upper=True, **SOLVE)
    if ttau is not None:
        inner = inner + as_column(xp, ttau) * solved
    total = -xp.matmul(v, inner)
    if tv is not None:
        total = total - xp.matmul(tv, as_column(xp, tau) * solved)
    return total if tc is None else total + tc


# ---- the first columns of Q ----
@general(torch="linalg_householder_product", shows="input=x tau", batch=behind)
def householder_product(xp, x, tau):
    if lapack.on_cpu(xp) and x.ndim == 2 and tau.size:
        (multiply,) = lapack.functions(x.dtype, "ungqr" if x.dtype.kind == "c" else "orgqr")
        return multiply(x, tau, lwork=lapack.BLOCK * x.shape[1])[0]
    v, _, s = _pieces(xp, x, tau)
    return _applied(xp, v, s, tau, identity_like(xp, x), False)


@householder_product.vjp("x", "tau")
def householder_product_vjp(xp, g, x, tau, needed):
    return _pulled_back(xp, g, x, tau, identity_like(xp, x), (*needed, False))[:2]


@householder_product.jvp
def householder_product_jvp(xp, t, x, tau):
    return _pushed(xp, *t, None, x, tau, identity_like(xp, x))


# ---- Q times a matrix ----
@general(shows="input2=tau input3=c left self transpose", batch=unmoved)
def ormqr(xp, x, tau, c, *, left, transpose):
    """Return Q @ c, Q^H @ c, c @ Q or c @ Q^H."""
    if lapack.on_cpu(xp) and x.ndim == 2 and tau.size and c.size:
        complex_ = x.dtype.kind == "c"
        (multiply,) = lapack.functions(x.dtype, "unmqr" if complex_ else "ormqr")
        side, trans = "L" if left else "R", "N" if not transpose else "C" if complex_ else "T"
        return multiply(side, trans, x[:, : tau.size], tau, c, lwork=lapack.BLOCK * max(c.shape))[0]
    v, _, s = _pieces(xp, x, tau)
    if left:
        return _applied(xp, v, s, tau, c, transpose)
    return adjoint(xp, _applied(xp, v, s, tau, adjoint(xp, c), not transpose))


@ormqr.vjp("x", "tau", "c")
def ormqr_vjp(xp, g, x, tau, c, needed, left, transpose):
    if not left:  # (c @ Q)^H = Q^H @ c^H
        g, c = adjoint(xp, g), adjoint(xp, c)
    if left != transpose:
        gx, gtau, gc = _pulled_back(xp, g, x, tau, c, needed)
    else:  # Q^H @ c: the gradient of Q is c @ g^H
        gx, gtau, _ = _pulled_back(xp, c, x, tau, g, (*needed[:2], False))
        gc = xp.ormqr(x, tau, g, left=True, transpose=False) if needed[2] else None
    return gx, gtau, gc if gc is None or left else adjoint(xp, gc)


@ormqr.jvp
def ormqr_jvp(xp, t, x, tau, c, left, transpose):
    tx, ttau, tc = t
    if left and not transpose:
        return _pushed(xp, tx, ttau, tc, x, tau, c)
    total = None if tc is None else xp.ormqr(x, tau, tc, left=left, transpose=transpose)
    if tx is None and ttau is None:
        return total
    whole = diagonal_matrix(xp, xp.ones_like(xp.sum(x, axis=(len(x.shape) - 1,), keepdims=False)))
    tq = _pushed(xp, tx, ttau, None, x, tau, whole)
    tq = adjoint(xp, tq) if transpose else tq
    moved = xp.matmul(tq, c) if left else xp.matmul(c, tq)
    return moved if total is None else total + moved
