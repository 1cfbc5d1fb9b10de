"""Reading and writing along one axis, at indices of the array's own rank: gather and the scatters."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import cast, is_half, numpy_namespace
from .._core.primitive import front, general, linear, vocabulary
from .._native import gathers


def grid(xp, indices, axis):
    """Return the index expression that names, for each entry of `indices`, its element along `axis`."""
    if indices.ndim == 0:
        return (indices,)
    places = list(xp.module.ogrid[tuple(slice(0, n) for n in indices.shape)])
    places[axis] = indices
    return tuple(places)


def flat_places(xp, indices, axis, shape):
    """Number the elements of dense memory of `shape` that `indices` along `axis` name, as a vector."""
    if indices.ndim <= 1:
        return indices.reshape(-1)
    if indices.size <= FEW and xp is numpy_namespace:
        return _few_flat_places(indices, axis, tuple(shape)).reshape(-1)
    step, places = 1, None
    for k in range(indices.ndim - 1, -1, -1):
        part = indices if k == axis else xp.module.arange(indices.shape[k]).reshape(-1, *(1,) * (indices.ndim - 1 - k))
        part = part * step if step != 1 else part
        places = part if places is None else places + part
        step *= shape[k]
    return places.reshape(-1)


FEW = 4096


@lru_cache(64)
def _few_places(named, axis, shape):
    """Return by how many elements one step along `axis` moves (None if by one), and what the other axes add."""
    step = math.prod(shape[axis + 1 :])
    others = [np.arange(n) * math.prod(shape[k + 1 :]) * (k != axis) for k, n in enumerate(named)]
    rest = sum(np.ix_(*others))
    return None if step == 1 else np.array(step), np.ascontiguousarray(rest)


def _few_flat_places(indices, axis, shape):
    step, rest = _few_places(indices.shape, axis, shape)
    return indices + rest if step is None else indices * step + rest


def _read_part(src, indices):
    """Return what a scatter reads of its source: the corner of the indices' shape, as a vector."""
    if src.shape != indices.shape:
        src = src[tuple(slice(0, n) for n in indices.shape)]
    return src.reshape(-1)


@linear(torch="gather", shows="dim index=indices self sparse_grad=False", dense=True)
def take_along(xp, x, indices, *, axis):
    if x.ndim == 1:
        return x.take(indices)
    if x.ndim == 0:
        return x.reshape(-1).take(indices)
    if x.flags.c_contiguous:
        if indices.size <= FEW and xp is numpy_namespace:
            return x.take(_few_flat_places(indices, axis, x.shape))
        return x.take(flat_places(xp, indices, axis, x.shape)).reshape(indices.shape)
    return x[grid(xp, indices, axis)]


@take_along.vjp("x")
def take_along_dx(xp, g, x, indices, axis):
    integer_indices(indices)
    return scattered(xp, g, indices, axis, tuple(x.shape))  # torch saves x, for its shape


def _rows(array, batched, size):
    """Give an array its batch axis, and its rows at least one axis."""
    array = front(array, batched, size)
    return vocabulary.expand_dims(array, axis=1) if array.ndim == 1 else array


def _along_rows(call, args, batched, size, scalar, **params):
    """Run an operation along an axis on all rows of a batch; `scalar` says that one row's result has no axis."""
    if "shape" in params:
        params["shape"] = (size, *(params["shape"] or (1,)))
    params["axis"] += 1
    out = call(*[_rows(a, b, size) for a, b in zip(args, batched, strict=True)], **params)
    return vocabulary.squeeze(out, axis=1) if scalar else out


@take_along.batch
def take_along_batch(call, args, batched, size, *, axis):
    return _along_rows(call, args, batched, size, args[1].ndim == batched[1], axis=axis)


@linear(torch="scatter_add")
def scatter_add_zeros(xp, g, indices, *, axis, shape):
    """Add `g` at `indices` along `axis` of zeros of `shape`: the transpose of `take_along`."""
    half = is_half(g.dtype)
    out = xp.module.zeros(shape, xp.module.float32 if half else g.dtype)
    _add_along(xp, out, indices, g, axis)
    return cast(out, g.dtype) if half else out


def _add_along(xp, out, indices, src, axis):
    """Add what a scatter reads of its source to dense memory, at indices along an axis."""
    values, shape = _read_part(src, indices), indices.shape
    if gathers.adds(out, values) and _is_of_columns(out.shape, shape, axis):
        index = np.ascontiguousarray(indices, np.int64)
        if gathers.are_inside(index, out.shape[axis]):
            outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
            gathers.add_elements(out, index, values.reshape(outer, shape[axis], inner))
            return
    places = flat_places(xp, indices, axis, out.shape)
    xp.module.add.at(out.reshape(-1), places, values.astype(out.dtype, copy=False))


def _is_of_columns(shape, named, axis):
    """Tell whether indices have the shape of what they are of, along other axes."""
    return 0 < len(shape) == len(named) and (*shape[:axis], *shape[axis + 1 :]) == (*named[:axis], *named[axis + 1 :])


def read_back(xp, g, indices, axis, shape):
    """Read what `scatter` wrote from a source of `shape`, which may be larger than the indices."""
    taken = xp.take_along(g, indices, axis=axis)
    if tuple(taken.shape) == tuple(shape):
        return taken
    return xp.put_zeros(taken, shape=shape, index=tuple(slice(0, n) for n in taken.shape))


scatter_add_zeros.vjp("g")(lambda xp, g, g_shape, indices, axis: read_back(xp, g, indices, axis, g_shape))


@scatter_add_zeros.batch
def scatter_add_zeros_batch(call, args, batched, size, *, axis, shape):
    return _along_rows(call, args, batched, size, not shape, axis=axis, shape=shape)


@general(differentiable=False)
def scatter_mask_zeros(xp, indices, *, axis, shape):
    """Mark the places of zeros of `shape` that `indices` along `axis` name."""
    out = xp.module.zeros(shape, bool)
    out.reshape(-1)[flat_places(xp, indices, axis, shape)] = True
    return out


@scatter_mask_zeros.batch
def scatter_mask_zeros_batch(call, args, batched, size, *, axis, shape):
    return _along_rows(call, args, batched, size, not shape, axis=axis, shape=shape)


def _scatter_batch(call, args, batched, size, **params):
    return _along_rows(call, args, batched, size, args[0].ndim == batched[0], **params)


@general(torch="scatter", shows={"ScatterBackward0": "dim index=indices", "ScatterBackward1": "dim index=indices"})
def scatter_assign(xp, x, indices, src, *, axis):
    out = x.copy() if x.ndim else xp.module.array(x)
    if x.ndim == 1 and indices.shape == src.shape:
        out[indices] = src
    elif x.ndim and src.shape == indices.shape and src.size <= FEW and xp is numpy_namespace:
        out.put(_few_flat_places(indices, axis, x.shape), src)
    else:
        out.reshape(-1)[flat_places(xp, indices, axis, out.shape)] = _read_part(src, indices)
    return out


scatter_assign.shows_edges("ScatterBackward1", 0)


@scatter_assign.vjp("x")
def scatter_assign_dx(xp, g, x_shape, indices, axis):
    return xp.where(xp.scatter_mask_zeros(indices, axis=axis, shape=x_shape), 0, g)


scatter_assign.vjp("src")(lambda xp, g, src_shape, indices, axis: read_back(xp, g, indices, axis, src_shape))


@scatter_assign.jvp
def scatter_assign_jvp(xp, t, x, indices, src, axis):
    tx, _, ts = t
    tx = xp.zeros_like(x) if tx is None else tx
    ts = xp.zeros_like(src) if ts is None else ts
    return xp.scatter_assign(tx, indices, ts, axis=axis)


scatter_assign.batch(_scatter_batch)


@general
def scatter_add(xp, x, indices, src, *, axis):
    half = is_half(x.dtype)
    if x.ndim == 1 and not half and indices.shape == src.shape and src.size <= FEW:
        out = x.copy()
        xp.module.add.at(out, indices, src)
        return out
    out = xp.module.array(x, "float32" if half else None, order="C")
    _add_along(xp, out, indices, src, axis)
    return cast(out, x.dtype) if half else out


scatter_add.vjp("x")(lambda xp, g: g)
scatter_add.vjp("src")(lambda xp, g, src_shape, indices, axis: read_back(xp, g, indices, axis, src_shape))


@scatter_add.jvp
def scatter_add_jvp(xp, t, x, indices, src, axis):
    tx, _, ts = t
    if ts is None:
        return tx
    added = xp.scatter_add_zeros(ts, indices, axis=axis, shape=tuple(x.shape))
    return added if tx is None else tx + added


scatter_add.batch(_scatter_batch)


# ---- indices that may have been changed since forward ----
def integer_indices(indices):
    """Refuse indices that saved-tensor hooks gave back as other numbers."""
    array = getattr(indices, "_array", indices)
    if array.dtype.kind in "iu":
        return indices
    if array.size:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    return array.astype("int64")


def scattered(xp, g, indices, axis, shape):
    """Add a gradient at indices that may have been changed since forward."""
    at = integer_indices(indices)
    try:
        return xp.scatter_add_zeros(g, at, axis=axis, shape=shape)
    except IndexError as error:
        raise RuntimeError(str(error).replace("for axis", "for dimension")) from None
