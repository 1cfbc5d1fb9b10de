"""The linear map of a layer: x times the transpose of a matrix of weights, over the last axis of x, with or without a bias."""

from __future__ import annotations

import math

from .._core.numpy_namespace import SINGLE, cast, is_half, numpy_namespace, product_of_halves
from .._core.passes import ones, times_transposed
from .._core.primitive import Gathers, front, general, multilinear, vocabulary
from .matrices import conjugate, rows_and_features, sizes_of, strides_of, transposed


def _product(xp, x, weight):
    """Multiply the last axis of x, folding the others into rows: NumPy's `dot` calls BLAS for matrices only."""
    if x.ndim < 2:
        return x.dot(weight.T)
    rows = x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    out = times_transposed(rows, weight, *rows.shape, weight.shape[0])
    return out if x.ndim == 2 else out.reshape((*x.shape[:-1], weight.shape[0]))


def _as_rows(xp, x):
    """Fold all axes but the last into one."""
    shape = tuple(x.shape)
    return x if len(shape) == 2 else xp.reshape(x, shape=(math.prod(shape[:-1]), shape[-1]))


@multilinear(torch="linear")
def linear_map(xp, x, y):
    """x @ y.T, where x has any number of axes and y two."""
    dtype = x.dtype
    if is_half(dtype):
        found = product_of_halves(x, y.T)
        return cast(_product(xp, cast(x, SINGLE), cast(y, SINGLE)), dtype) if found is None else found
    return _product(xp, x, y)


def _turned_weights(node):
    node.check_freed()
    if node._edges[node.input_of["x"]] is None:
        return None  # never saved
    node.check_saved(("y",))
    return node.saved_tensor("y").t()


# A linear layer is one node here and several in torch; it shows what torch's outermost node shows.
_WEIGHTS = {
    "mat2": _turned_weights,
    "mat2_sym_sizes": sizes_of("y", turned=True),
    "mat2_sym_strides": strides_of("y", turned=True),
}
linear_map.shows("self", "MmBackward0", self_sym_sizes=sizes_of("x"), self_sym_strides=strides_of("x"), **_WEIGHTS)
linear_map.shows("", "UnsafeViewBackward0", self_sym_sizes=rows_and_features)
linear_map.shows("dim=0", "SqueezeBackward4", self_sym_sizes=rows_and_features)


@linear_map.vjp("x")
def linear_map_dx(xp, g, y):
    return xp.matmul(g, conjugate(xp, y))


@linear_map.vjp("y")
def linear_map_dy(xp, g, x):
    return xp.matmul(transposed(xp, _as_rows(xp, g)), _as_rows(xp, conjugate(xp, x)))


# ---- the same on NumPy arrays, by one BLAS call each ----
def _rows(array):
    return array if array.ndim == 2 else array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _plain_dx(g, y):
    return g.dot(y) if g.ndim == 2 else _rows(g).dot(y).reshape((*g.shape[:-1], y.shape[1]))


def _plain_dy(g, x):
    return _rows(g).T.dot(_rows(x))


def _plain_dbias(g, bias_shape):
    if bias_shape != g.shape[-1:]:
        return numpy_namespace.sum_to(g, shape=bias_shape)
    rows = _rows(g)
    return ones(rows.shape[0], rows.dtype).dot(rows)


linear_map.plain_rules = {"x": _plain_dx, "y": _plain_dy}
linear_map.gathers = Gathers(weights="y", left="g", right="x")
linear_map.turned = "y"
linear_map.hot_if = (
    "x0.ndim and x1.ndim == 2 and (d := x0.dtype) is x1.dtype and d.kind == 'f' and x0.shape[-1] == x1.shape[1]"
)


@linear_map.batch
def linear_map_batch(call, args, batched, size):
    x, y = args
    if not batched[1]:
        return call(x, y)
    x = front(x, batched[0], size)
    shape = tuple(x.shape)
    rows = vocabulary.reshape(x, shape=(size, math.prod(shape[1:-1]), shape[-1]))
    out = vocabulary.matmul(rows, transposed(vocabulary, y))
    return vocabulary.reshape(out, shape=(*shape[:-1], y.shape[-2]))


@general(torch="addmm")
def affine(xp, bias, x, y):
    """x @ y.T + bias."""
    dtype = x.dtype
    if is_half(dtype):
        if bias.ndim == 1 and (found := product_of_halves(x, y.T, bias)) is not None:
            return found
        return cast(affine.implementation(xp, *[cast(a, SINGLE) for a in (bias, x, y)]), dtype)
    out = _product(xp, x, y)
    if bias.ndim > out.ndim:  # a batch of vmap
        return out + bias
    out += bias
    return out


affine.shows("alpha=1 beta=1 mat1=x", mat1_sym_sizes=sizes_of("x"), mat1_sym_strides=strides_of("x"), **_WEIGHTS)
affine.shows("", "ViewBackward0", self_sym_sizes=rows_and_features)
affine.vjp("bias")(lambda xp, g, bias_shape: xp.sum_to(g, shape=bias_shape))
affine.vjp("x")(linear_map_dx)
affine.vjp("y")(linear_map_dy)
affine.plain_rules = {"bias": _plain_dbias, "x": _plain_dx, "y": _plain_dy}
affine.gathers = Gathers(weights="y", left="g", right="x", bias="bias")
affine.turned = "y"
affine.hot_if = (
    "x1.ndim and x2.ndim == 2 and (d := x1.dtype) is x2.dtype is x0.dtype and d.kind == 'f' and "
    "x1.shape[-1] == (sizes := x2.shape)[1] and x0.shape == sizes[:1]"
)


@affine.jvp
def affine_jvp(xp, t, x, y, out):
    tb, tx, ty = t
    total = None if tb is None else xp.broadcast_to(tb, shape=tuple(out.shape))
    for term in (None if tx is None else xp.linear_map(tx, y), None if ty is None else xp.linear_map(x, ty)):
        if term is not None:
            total = term if total is None else total + term
    return total


@affine.batch
def affine_batch(call, args, batched, size):
    bias, x, y = args
    if not batched[0] and not batched[2]:
        return call(*args)
    out = linear_map_batch(vocabulary.linear_map, (x, y), batched[1:], size) if any(batched[1:]) else None
    if out is None:
        product = vocabulary.linear_map(x, y)
        out = vocabulary.broadcast_to(product, shape=(size, *product.shape))
    if batched[0]:
        bias = vocabulary.reshape(bias, shape=(size, *(1,) * (out.ndim - bias.ndim), *bias.shape[1:]))
    return out + bias
