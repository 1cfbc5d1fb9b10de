"""QR decomposition, and the reflectors LAPACK makes it of."""

from __future__ import annotations

from .._core import lapack
from .._core.primitive import behind, general, vocabulary
from . import solving  # noqa: F401 - the rules solve with triangles
from .matrices import adjoint, columns, diagonal_matrix, diagonal_of, is_complex

NO_Q = (
    "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
    "mode='reduced') if you are going to differentiate through linalg.qr."
)
NOT_UNIQUE = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."


@general(torch="linalg_qr", outputs=2)
def qr(xp, x, *, mode):
    q, r = lapack.qr(xp, x, mode)
    return (xp.module.empty((0,), x.dtype) if q is None else q), r


def _refuse(shape, mode):
    """Raise torch's error where Q is unknown or not unique."""
    if mode == "r":
        raise RuntimeError(NO_Q)
    if mode == "complete" and shape[-2] > shape[-1]:
        raise RuntimeError(NOT_UNIQUE)


@qr.vjp("x")
def qr_dx(xp, g, out, x_shape, mode):
    _refuse(x_shape, mode)
    gq, gr = g
    q, r = out
    m, n = x_shape[-2:]
    if m >= n:
        return _tall_dx(xp, gq, gr, q, r)
    # a wide matrix is a square one and columns that Q turns into the rest of R
    beside = columns(xp, r, m, n)
    if gr is None:
        first = _tall_dx(xp, gq, None, q, columns(xp, r, 0, m))
        return xp.concat(first, xp.zeros_like(beside), axis=len(x_shape) - 1)
    rest = columns(xp, gr, m, n)
    through = xp.matmul(q, xp.matmul(beside, adjoint(xp, rest)))
    gq = through if gq is None else gq + through
    first = _tall_dx(xp, gq, columns(xp, gr, 0, m), q, columns(xp, r, 0, m))
    return xp.concat(first, xp.matmul(q, rest), axis=len(x_shape) - 1)


def _tall_dx(xp, gq, gr, q, r):
    inner = None
    if gr is not None:
        inner = xp.matmul(gr, adjoint(xp, r))
    if gq is not None:
        product = xp.matmul(adjoint(xp, q), gq)
        inner = -product if inner is None else inner - product
    upper = xp.triangle(inner, upper=True, k=1)
    d = diagonal_of(xp, inner)
    real = diagonal_matrix(xp, xp.real(d) if is_complex(d.dtype) else d)
    full = xp.matmul(q, upper + adjoint(xp, upper) + real)
    if gq is not None:
        full = gq + full
    return xp.solve_triangular(adjoint(xp, r), full, upper=False, left=False, unitriangular=False)


@qr.jvp
def qr_jvp(xp, t, out, x_shape, mode):
    _refuse(x_shape, mode)
    q, r = out
    m, n = x_shape[-2:]
    if m >= n:
        return _tall_jvp(xp, t, q, r)
    tq, tr = _tall_jvp(xp, columns(xp, t, 0, m), q, columns(xp, r, 0, m))
    rest = columns(xp, t, m, n) - xp.matmul(tq, columns(xp, r, m, n))
    return tq, xp.concat(tr, xp.matmul(adjoint(xp, q), rest), axis=len(x_shape) - 1)


def _tall_jvp(xp, t, q, r):
    scaled = xp.solve_triangular(r, t, upper=True, left=False, unitriangular=False)
    inner = xp.matmul(adjoint(xp, q), scaled)
    turned = xp.triangle(inner + adjoint(xp, inner), upper=True, k=0)
    turned = turned - diagonal_matrix(xp, diagonal_of(xp, turned) * 0.5)
    return scaled - xp.matmul(q, turned), xp.matmul(turned, r)


@qr.batch
def qr_batch(call, args, batched, size, *, mode):
    q, r = call(args[0], mode=mode)
    return (vocabulary.broadcast_to(q, shape=(size, 0)) if mode == "r" else q), r


@general(outputs=2, batch=behind)
def geqrf(xp, x):
    """Return R and the reflectors below it in one matrix, and the reflectors' factors."""
    return lapack.geqrf(xp, x)


@geqrf.vjp("x")
def geqrf_dx(xp, g):
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")
