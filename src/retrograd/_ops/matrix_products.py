"""Matrix products."""

from __future__ import annotations

from numpy import array

from .._core.numpy_namespace import SINGLE, cast, is_half, numpy_namespace
from .._core.primitive import Gathers, aligned, behind, front, general, linear, multilinear, vocabulary
from .._core.shown import given
from .._thresholds import LARGE_PRODUCT as LARGE
from .._thresholds import SMALL_MATRIX
from .matrices import conjugate, sizes_of, strides_of, transposed


def _scaled(x, factor):
    """Multiply by a number, which is 1 most of the time."""
    return x if factor == 1 else x * factor


@multilinear(dense=True)
def matmul(xp, x, y):
    if x.ndim < 3 and y.ndim < 3 and x.dtype.itemsize != 2:
        return x.dot(y)  # the same BLAS call, without the machinery of a gufunc
    if x.ndim > 2 < y.ndim and x.shape[-1] == 1 == y.shape[-2]:
        return x * y  # outer products, one by one, at which BLAS takes ten times as long
    if x.size < SMALL_MATRIX > y.size and x.dtype.char in "fd":
        return xp.module.matmul(x, y)
    return xp.matmul(x, y)


def _given_strides(name, at):
    """Read the strides of an operand, unless no gradient goes to it."""
    read = given(name)
    return lambda node: read(node) if node._edges[at] is not None else ()


matmul.shows(
    "mat2=y mat2_sym_sizes=y_shape self self_sym_sizes",
    "MmBackward0",
    mat2_sym_strides=_given_strides("mat2_sym_strides", 1),
    self_sym_strides=_given_strides("self_sym_strides", 0),
)
matmul.shows("self vec=y", "MvBackward0")
matmul.shows("self tensor=y", "DotBackward0")
matmul.shows("mat2=y self", "BmmBackward0")


def _summed(xp, grad, shape):
    """Sum what broadcasting added; a gradient that has its shape is left alone, for every step is a node of the next order."""
    return grad if tuple(grad.shape) == shape else xp.sum_to(grad, shape=shape)


@matmul.vjp("x")
def matmul_dx(xp, g, y, x_shape):
    y = conjugate(xp, y)
    if len(y.shape) == 1:
        if len(x_shape) == 1:
            return g * y
        return xp.expand_dims(g, axis=len(g.shape)) * y
    if len(x_shape) == 1:  # (k) @ (..., k, n) -> (..., n)
        if len(y.shape) == 2:
            return xp.matmul(y, g)
        full = xp.matmul(y, xp.expand_dims(g, axis=len(g.shape)))
        return xp.sum_to(xp.squeeze(full, axis=len(full.shape) - 1), shape=x_shape)
    if len(x_shape) == len(y.shape) == 2:
        return xp.matmul_nt(g, y)
    return _summed(xp, xp.matmul(g, transposed(xp, y)), x_shape)


@matmul.vjp("y")
def matmul_dy(xp, g, x, y_shape):
    x = conjugate(xp, x)
    if len(x.shape) == 1:
        if len(y_shape) == 1:
            return g * x
        return _summed(xp, xp.expand_dims(x, axis=1) * xp.expand_dims(g, axis=len(g.shape) - 1), y_shape)
    if len(y_shape) == 1:  # (..., m, k) @ (k) -> (..., m)
        if len(x.shape) == 2:
            return xp.matmul(transposed(xp, x), g)
        full = xp.matmul(transposed(xp, x), xp.expand_dims(g, axis=len(g.shape)))
        return xp.sum_to(xp.squeeze(full, axis=len(full.shape) - 1), shape=y_shape)
    if len(x.shape) == len(y_shape) == 2:
        return xp.matmul_tn(x, g)
    return _summed(xp, xp.matmul(transposed(xp, x), g), y_shape)


# ---- the same on NumPy arrays: two matrices, as loops write products, without the calls between ----
def _plain_dx(g, y, x_shape):
    return g.dot(y.T) if g.ndim == 2 == y.ndim else matmul_dx(numpy_namespace, g, y, x_shape)


def _plain_dy(g, x, y_shape):
    return x.T.dot(g) if g.ndim == 2 == x.ndim else matmul_dy(numpy_namespace, g, x, y_shape)


matmul.plain_rules = {"x": _plain_dx, "y": _plain_dy}
matmul.gathers = Gathers(weights="y", left="x", right="g")


@matmul.batch
def matmul_batch(call, args, batched, size):
    x, y = args
    x_rank, y_rank = x.ndim - batched[0], y.ndim - batched[1]
    if x_rank == 1 and y_rank == 1:
        if batched[0] != batched[1]:
            matrix, vector = (x, y) if batched[0] else (y, x)
            return call(matrix, vector)
        return vocabulary.sum(x * y, axis=(1,), keepdims=False)
    # One matrix for the whole batch: its vectors are the rows of a matrix, and one product does for all of them.
    if x_rank == 2 and y_rank == 1 and not batched[0]:
        return call(y, transposed(vocabulary, x))
    if y_rank == 2 and not batched[1]:
        if x_rank == 1:
            return call(x, y)
        if x_rank == 2:
            rows = vocabulary.reshape(x, shape=(size * x.shape[1], x.shape[2]))
            return vocabulary.reshape(call(rows, y), shape=(size, x.shape[1], y.shape[1]))
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


# Products of two matrices of which one is transposed. The gradients of these and of `matmul` are such products again: no order
# needs a node for a transposition, and no gradient comes out in another memory order than what it belongs to, which would
# make every sum of two of them ten times as slow.
@multilinear(torch="mm", shows="mat2=y self")
def matmul_nt(xp, x, y):
    return x.dot(y.T) if x.dtype.itemsize != 2 else xp.matmul(x, y.T)


@matmul_nt.vjp("x")
def matmul_nt_dx(xp, g, y):
    return xp.matmul(g, conjugate(xp, y))


@matmul_nt.vjp("y")
def matmul_nt_dy(xp, g, x):
    return xp.matmul_tn(g, conjugate(xp, x))


@matmul_nt.batch
def matmul_nt_batch(call, args, batched, size):
    x, y = args
    return matmul_batch(vocabulary.matmul, (x, transposed(vocabulary, y)), batched, size)


@multilinear(torch="mm", shows="mat2=y self")
def matmul_tn(xp, x, y):
    return x.T.dot(y) if x.dtype.itemsize != 2 else xp.matmul(x.T, y)


@matmul_tn.vjp("x")
def matmul_tn_dx(xp, g, y):
    return xp.matmul_nt(conjugate(xp, y), g)


@matmul_tn.vjp("y")
def matmul_tn_dy(xp, g, x):
    return xp.matmul(conjugate(xp, x), g)


@matmul_tn.batch
def matmul_tn_batch(call, args, batched, size):
    x, y = args
    return matmul_batch(vocabulary.matmul, (transposed(vocabulary, x), y), batched, size)


# ---- products added to something ----
def _weighted_sum(xp, bias, product, beta, alpha, dtype):
    """Compute beta * bias + alpha * product, which is new memory; where beta is 0 nothing of the bias, not even NaN."""
    if alpha != 1:
        product = product * alpha
    if bias.ndim > product.ndim:  # a batch of vmap
        product = xp.broadcast_to(product, shape=bias.shape[: bias.ndim - product.ndim] + product.shape).copy()
    if beta != 0:
        product += bias if beta == 1 else bias * beta
    return product if product.dtype == dtype else cast(product, dtype)


@general
def addmm(xp, bias, x, y, *, beta, alpha):
    """beta * bias + alpha * (x @ y): of matrices, of batches of them, or of a matrix and a vector."""
    dtype = x.dtype
    if is_half(dtype):
        bias, x, y = (cast(a, SINGLE) for a in (bias, x, y))
    product = x.dot(y) if x.ndim < 3 and y.ndim < 3 else xp.matmul(x, y)
    return _weighted_sum(xp, bias, product, beta, alpha, dtype)


addmm.shows(
    "alpha beta mat1=x mat2=y",
    mat1_sym_sizes=sizes_of("x"),
    mat1_sym_strides=strides_of("x"),
    mat2_sym_sizes=sizes_of("y"),
    mat2_sym_strides=strides_of("y"),
)
addmm.shows("alpha beta mat=x vec=y", "AddmvBackward0")
addmm.shows("alpha beta batch1=x batch2=y", "BaddbmmBackward0")


@addmm.vjp("bias")
def addmm_dbias(xp, g, bias_shape, beta):
    return xp.sum_to(_scaled(g, _conjugate_number(beta)), shape=bias_shape)


@addmm.vjp("x")
def addmm_dx(xp, g, y, x_shape, alpha):
    return matmul_dx(xp, _scaled(g, _conjugate_number(alpha)), y, x_shape)


@addmm.vjp("y")
def addmm_dy(xp, g, x, y_shape, alpha):
    return matmul_dy(xp, _scaled(g, _conjugate_number(alpha)), x, y_shape)


def _conjugate_number(number):
    return number.conjugate() if isinstance(number, complex) else number


@addmm.jvp
def addmm_jvp(xp, t, bias, x, y, out, beta, alpha):
    tb, tx, ty = t
    terms = (None if tx is None else xp.matmul(tx, y), None if ty is None else xp.matmul(x, ty))
    return _tangent(xp, tb, terms, out, beta, alpha)


def _tangent(xp, tb, terms, out, beta, alpha):
    total = None if tb is None else xp.broadcast_to(_scaled(tb, beta), shape=tuple(out.shape))
    for term in terms:
        if term is not None:
            total = _scaled(term, alpha) if total is None else total + _scaled(term, alpha)
    return total


@addmm.batch
def addmm_batch(call, args, batched, size, *, beta, alpha):
    bias, x, y = args
    vector = y.ndim - batched[2] == 1
    if vector:  # a matrix of one column
        y = vocabulary.expand_dims(y, axis=y.ndim)
        bias = vocabulary.expand_dims(bias, axis=bias.ndim) if bias.ndim - batched[0] else bias
    rank = max(a.ndim - b for a, b in zip((bias, x, y), batched, strict=True))
    out = call(
        *[_lined_up(a, b, rank, size) for a, b in zip((bias, x, y), batched, strict=True)], beta=beta, alpha=alpha
    )
    return vocabulary.squeeze(out, axis=out.ndim - 1) if vector else out


@general(shows="alpha beta vec1=x vec2=y")
def addr(xp, bias, x, y, *, beta, alpha):
    """beta * bias + alpha * (the outer product of x and y)."""
    dtype = x.dtype
    if is_half(dtype):  # torch rounds after every step here
        alpha, beta = dtype.type(alpha), dtype.type(beta)
    if dtype.kind == "b":
        product = x[..., :, None] & y[..., None, :] if alpha else xp.zeros_like(x[..., :, None] & y[..., None, :])
        return product | bias if beta else product
    return _weighted_sum(xp, bias, _scaled(x, alpha)[..., :, None] * y[..., None, :], beta, 1, dtype)


@addr.vjp("bias")
def addr_dbias(xp, g, bias_shape, beta):
    return xp.sum_to(_scaled(g, _conjugate_number(beta)), shape=bias_shape)


@addr.vjp("x")
def addr_dx(xp, g, y, alpha):
    return xp.matmul(_scaled(g, _conjugate_number(alpha)), conjugate(xp, y))


@addr.vjp("y")
def addr_dy(xp, g, x, alpha):
    return xp.matmul(conjugate(xp, x), _scaled(g, _conjugate_number(alpha)))


def _outer(xp, x, y):
    return xp.expand_dims(x, axis=len(x.shape)) * xp.expand_dims(y, axis=len(y.shape) - 1)


@addr.jvp
def addr_jvp(xp, t, bias, x, y, out, beta, alpha):
    tb, tx, ty = t
    terms = (None if tx is None else _outer(xp, tx, y), None if ty is None else _outer(xp, x, ty))
    return _tangent(xp, tb, terms, out, beta, alpha)


@addr.batch
def addr_batch(call, args, batched, size, *, beta, alpha):
    bias, x, y = args
    if batched[0] and bias.ndim < 3:
        bias = vocabulary.reshape(bias, shape=(size, *(1,) * (3 - bias.ndim), *bias.shape[1:]))
    return call(bias, front(x, batched[1], size), front(y, batched[2], size), beta=beta, alpha=alpha)


@linear(shows="self_sym_sizes", batch=behind)
def trace(xp, x):
    """The sum of the diagonal."""
    if is_half(x.dtype):
        return x.trace(0, -2, -1, dtype="float32").astype(x.dtype)
    if x.dtype.kind in "iu":
        return x.trace(0, -2, -1, dtype="int64")
    return x.trace(0, -2, -1)


@trace.vjp("x")
def trace_dx(xp, g, x_shape):
    size = min(x_shape[-2:])
    spread = xp.broadcast_to(xp.expand_dims(g, axis=len(g.shape)), shape=(*g.shape, size))
    rank = len(x_shape)
    return xp.put_diagonal(spread, shape=tuple(x_shape), offset=0, axis1=rank - 2, axis2=rank - 1)


NEXT = (array([1, 2, 0]), array([2, 0, 1]))


@multilinear(torch="linalg_cross", batch=aligned)
def cross(xp, x, y, *, axis):
    """The vector product along one axis, counted from the end, of length 3."""
    if x.size + y.size < LARGE and xp is numpy_namespace:
        one, two = NEXT
        out = x.take(one, axis) * y.take(two, axis)
        out -= x.take(two, axis) * y.take(one, axis)
        return out
    (x0, x1, x2), (y0, y1, y2) = xp.module.moveaxis(x, axis, 0), xp.module.moveaxis(y, axis, 0)
    out = xp.module.empty(xp.module.broadcast_shapes(x.shape, y.shape), x.dtype)
    first, second, third = xp.module.moveaxis(out, axis, 0)
    xp.module.subtract(x1 * y2, x2 * y1, out=first)
    xp.module.subtract(x2 * y0, x0 * y2, out=second)
    xp.module.subtract(x0 * y1, x1 * y0, out=third)
    return out


@cross.vjp("x")
def cross_dx(xp, g, y, x_shape, axis):
    return xp.sum_to(xp.cross(conjugate(xp, y), g, axis=axis), shape=x_shape)


@cross.vjp("y")
def cross_dy(xp, g, x, y_shape, axis):
    return xp.sum_to(xp.cross(g, conjugate(xp, x), axis=axis), shape=y_shape)
