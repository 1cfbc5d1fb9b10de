"""Pseudo-inverses, ranks and least squares: what singular values above a cutoff say of a matrix."""

from __future__ import annotations

from numpy import broadcast_shapes, ndim

from .._core.primitive import align_ranks, front, general, vocabulary
from . import matrix_products, svd  # noqa: F401 - the rules use their names
from .matrices import adjoint


def _cutoff(xp, s, atol, rtol):
    """Return below which size a singular value counts as zero: the larger of two limits, one relative to the largest."""
    return xp.module.maximum(atol, rtol * (s.max(axis=-1) if s.shape[-1] else s.sum(axis=-1)))[..., None]


def _inverse_parts(xp, x, hermitian):
    """Return u, s, vh with x = u diag(s) vh and the sizes of s."""
    if hermitian:
        s, u = xp.module.linalg.eigh(x)
        return u, s, u.conj().swapaxes(-1, -2), abs(s)
    u, s, vh = xp.module.linalg.svd(x, full_matrices=False)
    return u, s, vh, s


@general(torch="linalg_pinv")
def pinv(xp, x, atol, rtol, *, hermitian):
    """The pseudo-inverse of matrices; `atol` and `rtol` are numbers or one for each matrix."""
    module = xp.module
    if not x.size:
        return module.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh, size = _inverse_parts(xp, x, hermitian)
    kept = size > _cutoff(xp, size, atol, rtol)
    inverse = module.where(kept, 1 / module.where(kept, s, 1), 0)
    found = (vh.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ u.conj().swapaxes(-1, -2)
    return found.astype(x.dtype, copy=False)


@pinv.vjp("x")
def pinv_dx(xp, g, x, out):
    turned, g_turned = adjoint(xp, out), adjoint(xp, g)
    right = xp.matmul(xp.matmul(g_turned, out), turned)  # G^H P P^H
    left = xp.matmul(turned, xp.matmul(out, g_turned))  # P^H P G^H
    first = xp.matmul(turned, xp.matmul(g, turned))
    return right - xp.matmul(x, xp.matmul(out, right)) + left - xp.matmul(xp.matmul(left, out), x) - first


@pinv.jvp
def pinv_jvp(xp, t, x, out):
    t, turned = t[0], adjoint(xp, out)
    t_turned = adjoint(xp, t)
    right = xp.matmul(out, xp.matmul(turned, t_turned))  # P P^H dA^H
    left = xp.matmul(xp.matmul(t_turned, turned), out)  # dA^H P^H P
    first = xp.matmul(out, xp.matmul(t, out))
    return right - xp.matmul(xp.matmul(right, x), out) + left - xp.matmul(out, xp.matmul(x, left)) - first


def _limits_lined_up(args, batched, size):
    """Bring matrices and their limits to one rank of leading axes, the batch first."""
    x, *limits = args
    rank = max(ndim(a) - b - (2 if k == 0 else 0) for k, (a, b) in enumerate(zip(args, batched, strict=True)))
    x = front(x, batched[0], size)
    missing = rank - (x.ndim - 3)
    found = [vocabulary.reshape(x, shape=(size, *(1,) * missing, *x.shape[1:])) if missing else x]
    for limit, mine in zip(limits, batched[1:], strict=True):
        if mine and limit.ndim - 1 < rank:
            limit = vocabulary.reshape(limit, shape=(size, *(1,) * (rank - limit.ndim + 1), *limit.shape[1:]))
        found.append(limit)
    return found


@pinv.batch
def pinv_batch(call, args, batched, size, *, hermitian):
    return call(*_limits_lined_up(args, batched, size), hermitian=hermitian)


@general(differentiable=False)
def matrix_rank(xp, x, atol, rtol, *, hermitian):
    """How many singular values are above the limits."""
    if hermitian:
        size = abs(xp.module.linalg.eigvalsh(x))
    else:
        size = xp.module.linalg.svd(x, compute_uv=False) if x.size else xp.module.zeros((*x.shape[:-2], 0))
    return (size > _cutoff(xp, size, atol, rtol)).sum(axis=-1)


@matrix_rank.batch
def matrix_rank_batch(call, args, batched, size, *, hermitian):
    return call(*_limits_lined_up(args, batched, size), hermitian=hermitian)


# ---- least squares ----
@general(torch="linalg_lstsq", outputs=3)
def lstsq(xp, a, b, *, rcond):
    """Return the x of least norm that minimises |a @ x - b|, the rank of a, and its singular values."""
    module = xp.module
    if not a.size:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        x = module.zeros((*lead, a.shape[-1], b.shape[-1]), b.dtype)
        return x, module.zeros(a.shape[:-2], "int64"), module.zeros((*a.shape[:-2], 0), a.real.dtype)
    u, s, vh = module.linalg.svd(a, full_matrices=False)
    kept = s > _cutoff(xp, s, 0, rcond)
    inverse = module.where(kept, 1 / module.where(kept, s, 1), 0)
    x = vh.conj().swapaxes(-1, -2) @ (inverse[..., :, None] * (u.conj().swapaxes(-1, -2) @ b))
    return x.astype(b.dtype, copy=False), kept.sum(axis=-1), s


def _pseudo_inverse(xp, a, rcond):
    return xp.pinv(a, 0.0, rcond, hermitian=False)


@lstsq.vjp("a", "b")
def lstsq_vjp(xp, g, a, b, needed, rcond, a_shape, b_shape):
    """The gradient of pinv(a) @ b, without the large matrix that the gradient of pinv(a) alone would be."""
    g = g[0]
    if g is None:
        return None, None
    p = _pseudo_inverse(xp, a, rcond)
    db = xp.matmul(adjoint(xp, p), g)
    da = None
    if needed[0]:
        x = xp.matmul(p, b)
        rest = b - xp.matmul(a, x)
        pulled = xp.matmul(adjoint(xp, p), x)
        beside = g - xp.matmul(adjoint(xp, a), db)
        product = (
            xp.matmul(rest, adjoint(xp, xp.matmul(p, db)))
            + xp.matmul(pulled, adjoint(xp, beside))
            - xp.matmul(db, adjoint(xp, x))
        )
        da = xp.sum_to(product, shape=a_shape)
    return da, xp.sum_to(db, shape=b_shape) if needed[1] else None


@lstsq.jvp
def lstsq_jvp(xp, t, a, b, out, rcond):
    ta, tb = t
    p = _pseudo_inverse(xp, a, rcond)
    x = xp.matmul(p, b)
    moved = None if tb is None else xp.matmul(p, tb)
    if ta is not None:
        turned = adjoint(xp, ta)
        outside = xp.matmul(turned, xp.matmul(adjoint(xp, p), x))
        inside = xp.matmul(p, xp.matmul(adjoint(xp, p), xp.matmul(turned, b - xp.matmul(a, x))))
        first = inside + outside - xp.matmul(p, xp.matmul(a, outside)) - xp.matmul(p, xp.matmul(ta, x))
        moved = first if moved is None else moved + first
    return moved, None, None


@lstsq.batch
def lstsq_batch(call, args, batched, size, *, rcond):
    a, b = align_ranks(args, batched)
    x, rank, s = call(a, b, rcond=rcond)
    if not batched[0]:
        rank, s = front(rank, False, size), front(s, False, size)
    return x, rank, s
