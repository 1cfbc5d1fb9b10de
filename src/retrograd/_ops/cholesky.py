"""Cholesky factors of positive-definite matrices, and what is solved with them."""

from __future__ import annotations

from .._core import lapack
from .._core.primitive import aligned, general, unmoved
from . import solving  # noqa: F401 - the rules solve with triangles
from .matrices import adjoint, lower_with_half_diagonal

TRIANGLE = {"left": True, "unitriangular": False}


@general(torch="linalg_cholesky_ex", outputs=2, batch=unmoved)
def cholesky(xp, x, *, upper):
    """Return the factor and, for each matrix, the order of the first minor that is not positive, or 0."""
    factor = lapack.cholesky(xp, x, upper)
    if not lapack.failed(factor[..., -1:, -1:]):
        return factor, xp.module.zeros(x.shape[:-2], "int32")
    (factorize,) = lapack.functions(x.dtype, "potrf")
    return lapack.one_by_one(xp, lambda a: _with_order(factorize(a, lower=not upper)), x, ranks=(2,))


def _with_order(found):
    factor, order = found
    bad = factor.diagonal() != factor.diagonal()
    if order == 0 and bad.any():  # some LAPACKs let NaN through
        order = bad.argmax() + 1
    return factor, lapack.info(order)


@cholesky.vjp("x")
def cholesky_dx(xp, g, out, upper):
    g, factor = g[0], out[0]
    if g is None:
        return None
    if upper:
        g, factor = adjoint(xp, g), adjoint(xp, factor)
    inner = lower_with_half_diagonal(xp, xp.matmul(adjoint(xp, factor), g))
    inner = xp.solve_triangular(adjoint(xp, factor), inner, upper=True, left=True, unitriangular=False)
    full = xp.solve_triangular(factor, inner, upper=False, left=False, unitriangular=False)
    return (full + adjoint(xp, full)) * 0.5  # the input is taken to be Hermitian


@cholesky.jvp
def cholesky_jvp(xp, t, out, upper):
    factor = adjoint(xp, out[0]) if upper else out[0]
    inner = xp.solve_triangular(adjoint(xp, factor), t, upper=True, left=False, unitriangular=False)
    inner = xp.solve_triangular(factor, inner, upper=False, left=True, unitriangular=False)
    moved = xp.matmul(factor, lower_with_half_diagonal(xp, inner))
    return (adjoint(xp, moved) if upper else moved), None


@general(shows="input2=factor result upper", batch=aligned)
def cholesky_solve(xp, b, factor, *, upper):
    """Solve a @ x = b for a = factor @ factor^H, or factor^H @ factor if `upper`."""
    first, second = (adjoint(xp, factor), factor) if upper else (factor, adjoint(xp, factor))
    half = xp.solve_triangular(first, b, upper=False, **TRIANGLE)
    return xp.solve_triangular(second, half, upper=True, **TRIANGLE)


def _pulled_to_factor(xp, common, factor, upper, shape):
    """Turn the gradient of the Hermitian matrix into that of its factor. The whole matrix, as torch, not a triangle."""
    full = xp.matmul(factor, common) if upper else xp.matmul(common, factor)
    return xp.sum_to(-full, shape=shape)


@cholesky_solve.vjp("b", "factor")
def cholesky_solve_vjp(xp, g, factor, out, needed, b_shape, factor_shape, upper):
    db = xp.cholesky_solve(g, factor, upper=upper)
    dfactor = None
    if needed[1]:
        common = xp.matmul(db, adjoint(xp, out))
        dfactor = _pulled_to_factor(xp, common + adjoint(xp, common), factor, upper, factor_shape)
    return xp.sum_to(db, shape=b_shape) if needed[0] else None, dfactor


@cholesky_solve.jvp
def cholesky_solve_jvp(xp, t, factor, out, upper):
    tb, tf = t
    right = tb
    if tf is not None:
        product = xp.matmul(adjoint(xp, tf), factor) if upper else xp.matmul(tf, adjoint(xp, factor))
        moved = -xp.matmul(product + adjoint(xp, product), out)
        right = moved if tb is None else tb + moved
    return xp.cholesky_solve(right, factor, upper=upper)


@general(shows="result self=factor upper", batch=unmoved)
def cholesky_inverse(xp, factor, *, upper):
    """Invert the matrix of which `factor` is the Cholesky factor."""
    return xp.cholesky_solve(xp.module.eye(factor.shape[-1], dtype=factor.dtype), factor, upper=upper)


@cholesky_inverse.vjp("factor")
def cholesky_inverse_dfactor(xp, g, factor, out, factor_shape, upper):
    common = xp.matmul(xp.matmul(out, g + adjoint(xp, g)), out)
    return _pulled_to_factor(xp, common, factor, upper, factor_shape)


@cholesky_inverse.jvp
def cholesky_inverse_jvp(xp, t, factor, out, upper):
    product = xp.matmul(adjoint(xp, t), factor) if upper else xp.matmul(t, adjoint(xp, factor))
    return -xp.matmul(xp.matmul(out, product + adjoint(xp, product)), out)
