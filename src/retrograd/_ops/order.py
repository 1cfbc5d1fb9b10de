"""Elements chosen along one axis: sorting, and the largest and smallest with their indices."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import is_half
from .._core.primitive import behind, general, linear, vocabulary
from .._core.shown import second_output
from .along import flat_places, integer_indices
from .reduce import extreme_of

SMALL = 1024  # indices up to which the places of rows are remembered
PACKED_FROM = 2048  # elements along the axis from which sorting keys with their positions packed in is quicker


@linear(torch="scatter", shows="dim index=indices", batch=behind)
def place_along(xp, g, indices, *, axis, shape):
    """Write `g` at indices along an axis of zeros, where no index stands twice."""
    out = xp.module.zeros(shape, g.dtype)
    out.reshape(-1)[flat_places(xp, indices, axis, shape)] = g.reshape(-1)
    return out


@place_along.vjp("g")
def place_along_dg(xp, g, indices, axis):
    return xp.take_along(g, indices, axis=axis)


# ---- operations that choose elements ----
def kept(xp, array, axis, keepdims):
    """Give a reduced array its axis back, as length one."""
    return array if keepdims else xp.expand_dims(array, axis=axis)


def _placed(xp, g, indices, axis, shape, place):
    """Bring a gradient to the chosen elements; saved-tensor hooks may have changed the indices since forward."""
    try:
        return getattr(xp, place)(g, indices, axis=axis, shape=shape)
    except IndexError as error:
        raise RuntimeError(str(error).replace("for axis", "for dimension")) from None


def chooses(run, name, torch, *, reduces=True, repeats=False, dense=None):
    """Declare an operation that returns chosen elements along `axis`, and their indices.

    The gradient goes to the chosen elements alone. `reduces`: it has a parameter `keepdims`. `repeats`: an element may
    be chosen several times.
    """
    primitive = general(run, name=name, torch=torch, outputs=2, dense=dense)
    place = "scatter_add_zeros" if repeats else "place_along"

    def dx(xp, g, x_shape, out, axis, keepdims):
        if g[0] is None:
            return None
        at = integer_indices(out[1])
        if not x_shape:
            return xp.copy(g[0])
        return _placed(xp, kept(xp, g[0], axis, keepdims), kept(xp, at, axis, keepdims), axis, x_shape, place)

    def tangent(xp, t, out, axis, keepdims):
        if not t.shape:
            return t, None
        chosen = xp.take_along(t, kept(xp, out[1], axis, keepdims), axis=axis)
        return (chosen if keepdims else xp.squeeze(chosen, axis=axis)), None

    names = "dim" if repeats else "dim keepdim self_sym_sizes" if reduces else "dim self_sym_sizes"
    primitive.shows(names, indices=second_output)
    if reduces:
        primitive.vjp("x")(dx)
        primitive.jvp(tangent)
    else:
        primitive.vjp("x")(lambda xp, g, x_shape, out, axis: dx(xp, g, x_shape, out, axis, True))
        primitive.jvp(lambda xp, t, out, axis: tangent(xp, t, out, axis, True))

    @primitive.batch
    def batch(call, args, batched, size, *, axis, **params):
        (x,) = args
        if x.ndim > 1:
            return call(x, axis=axis + 1, **params)
        rows = call(vocabulary.reshape(x, shape=(size, 1)), axis=1, **params)  # numbers: each becomes a row of one
        return tuple(vocabulary.reshape(part, shape=(size,)) for part in rows)

    return primitive


@lru_cache(maxsize=256)
def _starts(shape, axis, keepdims):
    """Number the first element of each row along an axis in dense memory of a small shape."""
    places = np.arange(math.prod(shape)).reshape(shape)[(*(slice(None),) * axis, slice(0, 1))].copy()
    return places if keepdims else places.squeeze(axis)


def picked(xp, x, at, axis, keepdims=True):
    """Read the elements at indices along an axis, which reduced indices lack; few of them with little ado."""
    if x.ndim > 1 and at.size <= SMALL and xp.module is np and x.flags.c_contiguous:
        step = 1 if axis == x.ndim - 1 else math.prod(x.shape[axis + 1 :])
        return x.reshape(-1).take((at if step == 1 else at * step) + _starts(x.shape, axis, keepdims))
    if x.ndim == 1:
        return x.take(at)
    values = xp.take_along(x, at if keepdims else xp.expand_dims(at, axis=axis), axis=axis)
    return values if keepdims else values.squeeze(axis)


def dense(values, at):
    """Give two results, such as chosen elements and their indices, dense memory."""
    if values.flags.c_contiguous and at.flags.c_contiguous:
        return values, at
    return values.copy("C"), at.copy("C")


def number(xp, x):
    """Choose the only element of a 0-d array."""
    return x.copy(), xp.module.zeros((), "int64")


# ---- sorting ----
def _packed_order(xp, x, axis, descending):
    """Sort numbers of at most four bytes with their positions packed in: stable, and NumPy sorts integers fastest."""
    module = xp.module
    if x.dtype.kind in "fV":
        single = x.astype(np.float32) + np.float32(0)  # -0 becomes 0, its equal
        single[module.isnan(single)] = np.nan  # one NaN, above everything
        bits = single.view(np.uint32)
        # the order of floats is that of their bits, once negative numbers are turned around
        keys = bits ^ ((bits.view(np.int32) >> 31).view(np.uint32) | np.uint32(1 << 31))
    else:
        keys = (x.astype(np.int64) + (1 << 31)).astype(np.uint32)
    packed = (~keys if descending else keys).astype(np.uint64)
    packed <<= np.uint64(32)
    length = x.shape[axis]
    packed |= module.arange(length, dtype=np.uint64).reshape((length,) + (1,) * (x.ndim - axis - 1))
    packed.sort(axis=axis)
    packed &= np.uint64((1 << 32) - 1)
    return packed.view(np.int64)


def order_of(xp, x, axis, descending=False):
    """Return the indices that sort a raw array, equal elements in their order; NaN counts as the largest."""
    if x.shape[axis] >= PACKED_FROM and x.dtype.itemsize <= 4:
        return _packed_order(xp, x, axis, descending)
    if is_half(x.dtype):
        x = x.astype(np.float32)  # NumPy does not know where bfloat16's NaN belongs
    if not descending:
        return _stable(xp, x, axis)
    if x.dtype.kind != "f":
        return _stable(xp, ~x, axis)  # the bits inverted: the order reversed
    if not has_nan(x):
        return _stable(xp, -x, axis)
    # the reversed stable ascending order of the reversed array
    module = xp.module
    return x.shape[axis] - 1 - module.flip(_stable(xp, module.flip(x, axis), axis), axis)


def _stable(xp, x, axis):
    # CuPy's method has no `kind`; NumPy's function is slower than its method
    return x.argsort(axis, kind="stable") if xp.module is np else xp.module.argsort(x, axis, kind="stable")


def has_nan(x):
    """Tell whether a raw array of real floats holds NaN: it counts as the largest."""
    if not x.size or getattr(x, "is_meta", False):  # which has no elements, NaN or not
        return False
    if type(x) is np.ndarray and x.dtype.kind == "f":
        top = x.item(x.argmax())
        return top != top
    top = x.reshape(-1)[x.argmax()] if x.flags.c_contiguous else x.max()
    return bool(top != top)


@general(differentiable=False)
def argsort(xp, x, *, axis, descending):
    return order_of(xp, x, axis, descending) if x.ndim else xp.module.zeros((), "int64")


@argsort.batch
def argsort_batch(call, args, batched, size, *, axis, descending):
    if args[0].ndim == 1:
        return vocabulary.astype(vocabulary.zeros_like(args[0]), dtype="int64")
    return call(args[0], axis=axis + 1, descending=descending)


def _sort(xp, x, *, axis, descending):
    """Sort along an axis; returns values and indices."""
    if not x.ndim:
        return number(xp, x)
    order = order_of(xp, x, axis, descending)
    return picked(xp, x, order, axis), order


sort = chooses(_sort, "sort", "sort", reduces=False)


# ---- extremes ----
def _extreme(name):
    def run(xp, x, *, axis, keepdims):
        if not x.ndim:
            return number(xp, x)
        at = getattr(x, f"arg{name}")(axis, keepdims=keepdims)
        if x.ndim == 1:
            return x[at], at
        if at.size <= SMALL:
            return dense(picked(xp, x, at, axis, keepdims), at)
        return dense(extreme_of(xp, name, x, (axis,), keepdims), at)

    return chooses(run, f"{name}_at", name, dense=True)


max_at, min_at = _extreme("max"), _extreme("min")
