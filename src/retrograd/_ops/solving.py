"""Linear systems and inverses."""

from __future__ import annotations

from numpy import broadcast_shapes
from numpy.linalg import LinAlgError as SingularError

from .._core.lapack import functions, one_by_one
from .._core.primitive import align_ranks, behind, general, vocabulary
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
