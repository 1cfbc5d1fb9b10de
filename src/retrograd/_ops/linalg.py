"""Matrix products."""

from __future__ import annotations

from .._core.primitive import front, general, multilinear, vocabulary


def _transposed(xp, x):
    n = len(x.shape)
    return xp.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


@multilinear
def matmul(xp, x, y):
    return xp.matmul(x, y)


@matmul.vjp("x")
def matmul_dx(xp, g, y, x_shape):
    y = xp.conj(y)
    if len(y.shape) == 1:
        if len(x_shape) == 1:
            return g * y
        return xp.expand_dims(g, axis=len(g.shape)) * y
    if len(x_shape) == 1:  # (k) @ (..., k, n) -> (..., n)
        full = xp.matmul(y, xp.expand_dims(g, axis=len(g.shape)))
        return xp.sum_to(xp.squeeze(full, axis=len(full.shape) - 1), shape=x_shape)
    return xp.sum_to(xp.matmul(g, _transposed(xp, y)), shape=x_shape)


@matmul.vjp("y")
def matmul_dy(xp, g, x, y_shape):
    x = xp.conj(x)
    if len(x.shape) == 1:
        if len(y_shape) == 1:
            return g * x
        return xp.sum_to(xp.expand_dims(x, axis=1) * xp.expand_dims(g, axis=len(g.shape) - 1), shape=y_shape)
    if len(y_shape) == 1:  # (..., m, k) @ (k) -> (..., m)
        full = xp.matmul(_transposed(xp, x), xp.expand_dims(g, axis=len(g.shape)))
        return xp.sum_to(xp.squeeze(full, axis=len(full.shape) - 1), shape=y_shape)
    return xp.sum_to(xp.matmul(_transposed(xp, x), g), shape=y_shape)


@matmul.batch
def matmul_batch(call, args, batched, size):
    x, y = args
    x_rank, y_rank = x.ndim - batched[0], y.ndim - batched[1]
    if x_rank == 1 and y_rank == 1:
        if batched[0] != batched[1]:
            matrix, vector = (x, y) if batched[0] else (y, x)
            return call(matrix, vector)
        return vocabulary.sum(x * y, axis=(1,), keepdims=False)
    if x_rank == 1:
        x = vocabulary.expand_dims(x, axis=x.ndim - 1)
    if y_rank == 1:
        y = vocabulary.expand_dims(y, axis=y.ndim)
    rank = max(x_rank, y_rank, 2)
    x, y = _lined_up(x, batched[0], rank, size), _lined_up(y, batched[1], rank, size)
    out = call(x, y)
    if x_rank == 1:
        out = vocabulary.squeeze(out, axis=out.ndim - 2)
    if y_rank == 1:
        out = vocabulary.squeeze(out, axis=out.ndim - 1)
    return out


def _lined_up(x, batched, rank, size):
    if not batched:
        return x
    missing = rank - (x.ndim - 1)
    return vocabulary.reshape(x, shape=(size, *(1,) * missing, *x.shape[1:])) if missing else front(x, True, size)


@general
def addmm(xp, bias, x, y, *, beta, alpha):
    """beta * bias + alpha * (x @ y)."""
    out = xp.matmul(x, y)
    if out.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        out = out * alpha
    return (out + (bias if beta == 1 else bias * beta)).astype(x.dtype, copy=False)


@addmm.vjp("bias")
def addmm_dbias(xp, g, bias_shape, beta):
    return xp.sum_to(g if beta == 1 else g * beta, shape=bias_shape)


@addmm.vjp("x")
def addmm_dx(xp, g, y, x_shape, alpha):
    return matmul_dx(xp, g if alpha == 1 else g * alpha, y, x_shape)


@addmm.vjp("y")
def addmm_dy(xp, g, x, y_shape, alpha):
    return matmul_dy(xp, g if alpha == 1 else g * alpha, x, y_shape)


@addmm.jvp
def addmm_jvp(xp, t, bias, x, y, out, beta, alpha):
    tb, tx, ty = t
    total = None if tb is None else xp.broadcast_to(tb * beta, shape=tuple(out.shape))
    for term in (None if tx is None else xp.matmul(tx, y), None if ty is None else xp.matmul(x, ty)):
        if term is not None:
            total = term * alpha if total is None else total + term * alpha
    return total


@addmm.batch
def addmm_batch(call, args, batched, size, *, beta, alpha):
    bias, x, y = args
    product = vocabulary.matmul(front(x, batched[1], size), front(y, batched[2], size))
    if batched[0] and bias.ndim < 3:
        bias = vocabulary.reshape(bias, shape=(size, *(1,) * (3 - bias.ndim), *bias.shape[1:]))
    return product * alpha + bias * beta
