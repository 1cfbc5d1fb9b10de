"""Scattering with a reduction, and reading and writing at positions of the flattened array: take, put, masked_scatter."""

from __future__ import annotations

import math

from .._core.numpy_namespace import ARRAY, is_half, numpy_namespace
from .._core.primitive import align_ranks, front, general, linear, stack, vocabulary
from .along import _along_rows, _read_part, _scatter_batch, flat_places
from .index import add_at, index_batch, index_put_batch

REDUCERS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def _identity(reduce, dtype):
    """Return the value that a reduction starts from, where the array's own value does not count."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        bits = dtype.itemsize * 8 - (dtype.kind == "i")
        return -(1 << bits) * (dtype.kind == "i") if reduce == "amax" else (1 << bits) - 1
    return -math.inf if reduce == "amax" else math.inf


@general(shows={"ScatterReduceBackward0": "dim=axis include_self index=indices reduce result self src"})
def scatter_reduce(xp, x, indices, src, *, axis, reduce, include_self):
    """Reduce `src` at `indices` along `axis` into a copy of `x`, whose own values count if `include_self`."""
    module, half = xp.module, is_half(x.dtype)
    if xp is not numpy_namespace and reduce not in ("sum", "mean"):  # CuPy's `at` knows sums only
        on_cpu = [array.get() for array in (x, indices, src)]
        params = {"axis": axis, "reduce": reduce, "include_self": include_self}
        return module.asarray(scatter_reduce.implementation(numpy_namespace, *on_cpu, **params))
    out = x.astype("float32", order="C") if half else x.copy() if x.ndim else module.array(x)
    flat, places = out.reshape(-1), flat_places(xp, indices, axis, out.shape)
    if not include_self:
        flat[places] = _identity(reduce, out.dtype)
    getattr(module, REDUCERS[reduce]).at(flat, places, _read_part(src, indices).astype(out.dtype, copy=False))
    if reduce == "mean":
        count = module.bincount(places, minlength=flat.size) + int(include_self)
        if not include_self:
            count[count == 0] = 1
        if out.dtype.kind in "iub":
            flat[...] = flat // count
        else:
            flat /= count.astype(flat.real.dtype)
    return out.astype(x.dtype) if half else out


def _read(xp, src, indices):
    """Return the corner of a source that a scatter reads."""
    named = tuple(indices.shape)
    return src if tuple(src.shape) == named else xp.getitem(src, index=tuple(slice(0, n) for n in named))


def _count(xp, indices, src, axis, shape, include_self):
    """Return how many values each mean is of."""
    count = xp.scatter_add_zeros(xp.ones_like(src), indices, axis=axis, shape=shape)
    return count + 1 if include_self else xp.where(xp.equal(count, 0), 1, count)


def _extremes(xp, x, indices, src, out, axis, include_self):
    """Return 1 for each value that is the extreme and else 0, of `x` and of `src`, and how many share each place."""
    own = xp.where(xp.equal(x, out), xp.ones_like(x), 0)
    if not include_self:
        own = xp.where(xp.scatter_mask_zeros(indices, axis=axis, shape=tuple(x.shape)), 0, own)
    theirs = xp.where(xp.equal(src, xp.take_along(out, indices, axis=axis)), xp.ones_like(src), 0)
    count = own + xp.scatter_add_zeros(theirs, indices, axis=axis, shape=tuple(x.shape))
    return own, theirs, xp.where(xp.equal(count, 0), 1, count)  # NaN equals nothing


def _slope_of_x(xp, x, indices, src, out, axis, reduce, include_self):
    """Return the derivative by each element of `x`; None stands for 1."""
    slope = None
    if reduce == "mean":
        slope = 1 / _count(xp, indices, src, axis, tuple(x.shape), include_self)
    elif reduce == "prod":
        slope = xp.scatter_reduce(xp.ones_like(x), indices, src, axis=axis, reduce="prod", include_self=True)
    elif reduce in ("amax", "amin"):
        own, _, count = _extremes(xp, x, indices, src, out, axis, include_self)
        slope = own / count
    if include_self:
        return slope
    mask = xp.scatter_mask_zeros(indices, axis=axis, shape=tuple(x.shape))
    return xp.where(mask, 0, xp.ones_like(x) if slope is None else slope)


@general(differentiable=False)
def rank_among_marked(xp, marks, indices, *, axis, shape):
    """Number the marked elements of a source that go to one place of `shape`, from 0; others have -1."""
    module, marked = xp.module, marks.reshape(-1)
    places = flat_places(xp, indices, axis, shape)[marked]
    order = module.argsort(places, **({"kind": "stable"} if xp is numpy_namespace else {}))
    ordered = places[order]
    ranks = module.empty_like(ordered)
    ranks[order] = module.arange(ordered.size) - module.searchsorted(ordered, ordered)
    out = module.full(marked.shape, -1)
    out[marked] = ranks
    return out.reshape(marks.shape)


@rank_among_marked.batch
def rank_among_marked_batch(call, args, batched, size, *, axis, shape):
    return _along_rows(call, args, batched, size, args[0].ndim == batched[0], axis=axis, shape=shape)


def _product_of_others(xp, x, indices, src, out, axis, include_self):
    """Return for each element of `src` the product at its place without it.

    Where it is zero, the product is made again with 1 in its place, because that can be differentiated again. Two of the zeros of a place
    are treated so: with a third one, all first and second derivatives there are zero.
    """
    zero = xp.equal(src, 0)
    product = xp.take_along(out, indices, axis=axis) / xp.where(zero, 1, src)
    ranks = xp.rank_among_marked(zero, indices, axis=axis, shape=tuple(x.shape))
    for rank in range(2):
        chosen = xp.equal(ranks, rank)
        known = xp.where(chosen, 1, src)
        others = xp.scatter_reduce(x, indices, known, axis=axis, reduce="prod", include_self=include_self)
        product = xp.where(chosen, xp.take_along(others, indices, axis=axis), product)
    return product


def _slope_of_src(xp, x, indices, src, out, axis, reduce, include_self):
    """Return the derivative by each element of `src`; None stands for 1."""
    if reduce == "mean":
        return 1 / xp.take_along(_count(xp, indices, src, axis, tuple(x.shape), include_self), indices, axis=axis)
    if reduce == "prod":
        return _product_of_others(xp, x, indices, src, out, axis, include_self)
    if reduce in ("amax", "amin"):  # equal ones share
        _, theirs, count = _extremes(xp, x, indices, src, out, axis, include_self)
        return theirs / xp.take_along(count, indices, axis=axis)
    return None


@scatter_reduce.vjp("x")
def scatter_reduce_dx(xp, g, x, indices, src, out, axis, reduce, include_self):
    slope = _slope_of_x(xp, x, indices, _read(xp, src, indices), out, axis, reduce, include_self)
    return g if slope is None else g * xp.conj(slope)


@scatter_reduce.vjp("src")
def scatter_reduce_dsrc(xp, g, x, indices, src, out, axis, reduce, include_self):
    slope = _slope_of_src(xp, x, indices, _read(xp, src, indices), out, axis, reduce, include_self)
    taken = xp.take_along(g, indices, axis=axis)
    if slope is not None:
        taken = taken * xp.conj(slope)
    if tuple(taken.shape) == tuple(src.shape):
        return taken
    return xp.put_zeros(taken, shape=tuple(src.shape), index=tuple(slice(0, n) for n in taken.shape))


@scatter_reduce.jvp
def scatter_reduce_jvp(xp, t, x, indices, src, out, axis, reduce, include_self):
    tx, _, ts = t
    total, part = None, _read(xp, src, indices)
    if tx is not None:
        slope = _slope_of_x(xp, x, indices, part, out, axis, reduce, include_self)
        total = tx if slope is None else tx * slope
    if ts is None:
        return total
    slope = _slope_of_src(xp, x, indices, part, out, axis, reduce, include_self)
    ts = _read(xp, ts, indices)
    added = xp.scatter_add_zeros(ts if slope is None else ts * slope, indices, axis=axis, shape=tuple(x.shape))
    return added if total is None else total + added


scatter_reduce.batch(_scatter_batch)


# ---- positions in the flattened array ----
@linear(shows="index=indices")
def take(xp, x, indices):
    return x.take(indices) if x.ndim else x.reshape(-1).take(indices)


@take.vjp("x")
def take_dx(xp, g, x_shape, indices):
    flat = xp.index_add_zeros(g, indices, shape=(math.prod(x_shape),), layout=(ARRAY,))
    return xp.reshape(flat, shape=tuple(x_shape))


def _flat_rows(x, batched, size):
    return vocabulary.reshape(x, shape=(size, -1) if batched else (-1,))


@take.batch
def take_batch(call, args, batched, size):
    x = _flat_rows(args[0], batched[0], size)
    return index_batch(vocabulary.index, [x, args[1]], batched, size, layout=(ARRAY,))


@general(shows="accumulate index=indices")
def put(xp, x, indices, src, *, accumulate):
    out = xp.module.array(x, "float32" if is_half(x.dtype) else None, order="C")
    flat, where = out.reshape(-1), (indices.reshape(-1),)
    values = src.reshape(-1).astype(out.dtype, copy=False)
    if accumulate:
        add_at(xp, flat, where, values)
    else:
        flat[where] = values
    return out.astype(x.dtype, copy=False)


@put.vjp("x")
def put_dx(xp, g, x_shape, indices, accumulate):
    if accumulate:
        return g
    count = math.prod(x_shape)
    named = xp.scatter_mask_zeros(_wrapped(xp, indices, count), axis=0, shape=(count,))
    return xp.where(xp.reshape(named, shape=tuple(x_shape)), 0, g)


def _wrapped(xp, indices, count):
    """Make positions a vector of numbers from 0."""
    flat = xp.reshape(indices, shape=(-1,))
    return xp.where(xp.less(flat, 0), flat + count, flat)


put.vjp("src")(lambda xp, g, src_shape, indices: xp.reshape(xp.take(g, indices), shape=tuple(src_shape)))


@put.jvp
def put_jvp(xp, t, x, indices, src, accumulate):
    tx, _, ts = t
    tx = xp.zeros_like(x) if tx is None else tx
    ts = xp.zeros_like(src) if ts is None else ts
    return xp.put(tx, indices, ts, accumulate=accumulate)


@put.batch
def put_batch(call, args, batched, size, *, accumulate):
    x, indices, src = (_flat_rows(a, b, size) for a, b in zip(args, batched, strict=True))
    order = [batched[0], batched[2], batched[1]]
    out = index_put_batch(vocabulary.index_put, [x, src, indices], order, size, layout=(ARRAY,), accumulate=accumulate)
    return vocabulary.reshape(out, shape=(size, *args[0].shape[batched[0] :]))


# ---- masks ----
@general(shows="mask")
def masked_scatter(xp, x, mask, src):
    """Write the elements of `src`, one after the other, where `mask` is true; `x` is broadcast to its shape."""
    out = xp.module.array(xp.module.broadcast_to(x, mask.shape), order="C")
    out[mask] = src.reshape(-1)[: int(xp.module.count_nonzero(mask))]
    return out


def _order_of(xp, mask):
    """Number the true places of a mask, from 0; other places get the number before."""
    flat = xp.reshape(mask, shape=(-1,))
    order = xp.cumsum(xp.astype(flat, dtype="int64"), axis=0) - 1
    return xp.reshape(xp.where(xp.less(order, 0), 0, order), shape=tuple(mask.shape))


@masked_scatter.vjp("x")
def masked_scatter_dx(xp, g, x_shape, mask):
    return xp.sum_to(xp.where(mask, 0, g), shape=tuple(x_shape))


@masked_scatter.vjp("src")
def masked_scatter_dsrc(xp, g, mask, src_shape):
    count = math.prod(src_shape)
    if not count:
        nothing = xp.getitem(xp.reshape(g, shape=(-1,)), index=(slice(0, 0),))
        return xp.reshape(nothing, shape=tuple(src_shape))
    order = _order_of(xp, mask)
    flat = xp.index_add_zeros(xp.where(mask, g, 0), order, shape=(count,), layout=(ARRAY,))
    return xp.reshape(flat, shape=tuple(src_shape))


@masked_scatter.jvp
def masked_scatter_jvp(xp, t, x, mask, src):
    tx, _, ts = t
    tx = xp.zeros_like(x) if tx is None else tx
    ts = xp.zeros_like(src) if ts is None else ts
    return xp.masked_scatter(tx, mask, ts)


@masked_scatter.batch
def masked_scatter_batch(call, args, batched, size):
    x, mask, src = args
    mask = front(mask, batched[1], size)
    flat = vocabulary.reshape(mask, shape=(size, -1))
    order = vocabulary.cumsum(vocabulary.astype(flat, dtype="int64"), axis=1) - 1
    order = vocabulary.where(vocabulary.less(order, 0), 0, order)
    taken = take_batch(vocabulary.take, [src, order], [batched[2], True], size)
    taken, x, mask = align_ranks(
        [vocabulary.reshape(taken, shape=tuple(mask.shape)), x, mask], [True, batched[0], True]
    )
    return vocabulary.where(mask, taken, x)


# ---- where elements are not zero ----
def positions(xp, x):
    """Return the indices of elements that are not zero, one row for each dimension."""
    if not x.ndim:
        return xp.module.zeros((0, int(bool(x))), "int64")
    if x.ndim == 1:
        return x.nonzero()[0].reshape(1, -1)
    flat = x.reshape(-1).nonzero()[0]
    out = xp.module.empty((x.ndim, flat.size), "int64")
    for k in range(x.ndim - 1, 0, -1):
        flat, out[k] = xp.module.divmod(flat, x.shape[k])
    out[0] = flat
    return out


@general(differentiable=False)
def argwhere(xp, x):
    return positions(xp, x).T


@general(differentiable=False)
def nonzero_static(xp, x, *, count, fill_value):
    found = positions(xp, x).T
    out = xp.module.full((count, x.ndim), fill_value, "int64")
    out[: min(count, len(found))] = found[:count]
    return out


def _row_by_row(call, args, batched, size, **params):
    """The number of elements found depends on the row, so rows are looked at one by one."""
    return stack([call(vocabulary.getitem(args[0], index=(k,)), **params) for k in range(size)])


argwhere.batch(_row_by_row)
nonzero_static.batch(_row_by_row)
