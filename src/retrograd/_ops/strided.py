"""Memory read with any sizes and strides: as_strided, its transpose, and sliding windows.

`as_strided` reads the memory under an array. Its derivatives cannot: a gradient or a tangent has memory of its own. They
think of the storage as a row of `length` places: an element of the array is at `start` plus its index times `in_stride`,
one of the result at `offset` plus its index times `stride`. All counts are of elements.
"""

from __future__ import annotations

import math

import numpy as np

from .._core.arrays import raw_leaf
from .._core.numpy_namespace import is_half, numpy_namespace
from .._core.primitive import linear, vocabulary
from .._errors import sizes


def last_place(shape, stride):
    """Return how far the last element lies behind the first; -1 if there are no elements."""
    place = 0
    for n, step in zip(shape, stride, strict=True):
        if not n:
            return -1
        place += (n - 1) * step
    return place


def storage_row(shape, in_stride, in_offset, size, stride, offset):
    """Return where two arrays on one storage lie in the shortest row that holds both."""
    low = min(in_offset, offset)
    start, offset = in_offset - low, offset - low
    length = max(start + last_place(shape, in_stride), offset + last_place(size, stride)) + 1
    return {"start": start, "offset": offset, "length": length}


def overlaps(shape, stride):
    """Tell whether some elements may share one place."""
    reach = 0
    for step, n in sorted((step, n) for n, step in zip(shape, stride, strict=True) if n != 1):
        if step <= reach:
            return True
        reach += (n - 1) * step
    return False


def _in_bytes(strides, array):
    return tuple([n * array.itemsize for n in strides])


def whole_memory(array):
    """Return the array that owns the memory under an array."""
    while getattr(array.base, "base", array) is not array:  # stride tricks put an object between
        array = array.base
    return array


def memory_row(xp, root, dtype):
    """View all memory of the array that owns it as a row."""
    return xp.restrided(root, (root.nbytes // root.itemsize,), (root.itemsize,)).view(dtype)


@linear(shows="size=given storage_offset stride=given", view=True)
def as_strided(xp, x, *, size, stride, offset, in_stride, in_offset):
    if x.base is None and xp is numpy_namespace and x.flags.c_contiguous:
        return read_row(xp, x, size, stride, offset)
    root = whole_memory(x)
    if type(root) is not type(x):
        root, offset = x, offset - in_offset
    whole = root.dtype is x.dtype and root.flags.c_contiguous
    return read_row(xp, root if whole else memory_row(xp, root, x.dtype), size, stride, offset)


@as_strided.vjp("x")
def as_strided_dx(xp, g, x_shape, size, stride, offset, in_stride, in_offset):
    row = storage_row(x_shape, in_stride, in_offset, size, stride, offset)
    return xp.restride_add(g, shape=x_shape, in_stride=in_stride, stride=stride, **row)


@as_strided.jvp
def as_strided_jvp(xp, t, x_shape, size, stride, offset, in_stride, in_offset):
    row = storage_row(x_shape, in_stride, in_offset, size, stride, offset)
    return xp.restride(t, in_stride=in_stride, size=size, stride=stride, **row)


@as_strided.batch
def as_strided_batch(call, args, batched, size_, *, size, stride, offset, in_stride, in_offset):
    shape = tuple(args[0].shape[1:])
    row = storage_row(shape, in_stride, in_offset, size, stride, offset)
    if not _reads_its_own(shape, in_stride, size, stride, **row):  # the graph of a sample has no edges to others
        raise NotImplementedError(
            f"as_strided: sizes {sizes(size)} with strides {sizes(stride)} read memory between the elements of a sample of "
            "vmap, which may be another sample's.\nHint: call contiguous() on the input of vmap, and count strides in the result."
        )
    raw = raw_leaf(args[0])
    own = tuple([n // raw.itemsize for n in getattr(raw, "strides", ())])[raw.ndim - args[0].ndim :]
    if isinstance(raw, np.ndarray) and raw.size and own[1:] == tuple(in_stride):  # the batch lies as its samples say
        params = {"offset": offset, "in_stride": own, "in_offset": in_offset}
        return call(args[0], size=(size_, *size), stride=(own[0], *stride), **params)
    params = row_of_rows({"in_stride": in_stride, "size": size, "stride": stride, **row}, size_)
    return vocabulary.restride(args[0], **params)


def _reads_its_own(shape, in_stride, size, stride, start, offset, length):
    """Tell whether all that is read from a row are places where an array lies."""
    if overlaps(shape, in_stride) or math.prod(shape) != length:
        row = laid_in_row(numpy_namespace, np.ones(shape, bool), in_stride, start, length)
        return bool(read_row(numpy_namespace, row, size, stride, offset).all())
    return True


def row_of_rows(params, count):
    """Return the parameters of `restride`, or of its transpose, for a batch: the rows lie behind each other."""
    length = params["length"]
    found = {**params, "length": count * length}
    for name in ("in_stride", "stride"):
        found[name] = (length, *params[name])
    for name in ("size", "shape"):
        if name in params:
            found[name] = (count, *params[name])
    return found


def _fills(array, in_stride, length):
    """Tell whether an array lies in memory as its strides say, and fills a row of `length` without gaps."""
    if array.size != length or overlaps(array.shape, in_stride):
        return False
    item = array.itemsize
    return all(
        have == step * item or n == 1 for n, have, step in zip(array.shape, array.strides, in_stride, strict=True)
    )


def laid_in_row(xp, x, in_stride, start, length):
    """Copy an array into its places of a row of zeros."""
    row = xp.module.zeros(length, x.dtype)
    read_row(xp, row, x.shape, in_stride, start)[...] = x
    return row


def read_row(xp, row, size, stride, offset):
    """View a row with sizes and strides."""
    return xp.restrided(row, size, _in_bytes(stride, row), offset * row.itemsize)


@linear(view=True)
def restride(xp, x, *, in_stride, start, size, stride, offset, length):
    """Put an array into a row of zeros, and read that; a view where the array is such a row."""
    shares = _fills(x, in_stride, length)
    row = xp.restrided(x, (length,), (x.itemsize,)) if shares else laid_in_row(xp, x, in_stride, start, length)
    return read_row(xp, row, size, stride, offset)


@restride.vjp("x")
def restride_dx(xp, g, x_shape, in_stride, start, stride, offset, length):
    return xp.restride_add(
        g, shape=x_shape, in_stride=in_stride, start=start, stride=stride, offset=offset, length=length
    )


restride.batch(lambda call, args, batched, count, **params: call(args[0], **row_of_rows(params, count)))


def _places(xp, shape, stride, start):
    """Return the place of every element."""
    places = xp.module.asarray(start)
    for n, step in zip(shape, stride, strict=True):
        places = places[..., None] + xp.module.arange(n) * step
    return places


@linear
def restride_add(xp, g, *, shape, in_stride, start, stride, offset, length):
    """Add a gradient up in a row of zeros, and read what the array's elements got: the transpose of `restride`.

    Elements of an array that shows one place several times share what the place gets, as torch's.
    """
    row = xp.module.zeros(length, "float32" if is_half(g.dtype) else g.dtype)
    if not overlaps(g.shape, stride):
        read_row(xp, row, g.shape, stride, offset)[...] = g
    else:
        xp.module.add.at(row, _places(xp, g.shape, stride, offset), g.astype(row.dtype, copy=False))
    repeated = overlaps(shape, in_stride)
    if repeated:
        counts = xp.module.bincount(_places(xp, shape, in_stride, start).reshape(-1), minlength=length)
        row /= xp.module.maximum(counts, 1).astype(row.real.dtype)
    return read_row(xp, row, shape, in_stride, start).astype(g.dtype, order="C", copy=repeated)


@restride_add.vjp("g")
def restride_add_dg(xp, g, g_shape, in_stride, start, stride, offset, length):
    read = xp.restride(g, in_stride=in_stride, start=start, size=g_shape, stride=stride, offset=offset, length=length)
    return xp.copy(read)  # one place may be read several times, and a gradient may be added to


restride_add.batch(lambda call, args, batched, count, **params: call(args[0], **row_of_rows(params, count)))


# ---- sliding windows ----
@linear(
    shows={None: "dimension self_sym_sizes size step", "AsStridedBackward0": "size=given storage_offset stride"},
    view=True,
)
def unfold(xp, x, *, axis, size, step):
    """Windows of `size` along an axis, every `step`, their elements as a last axis: a view."""
    if not x.ndim:
        return xp.restrided(x, (size,), (x.itemsize,))
    count = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    own = x.strides
    strides = (*own[:axis], own[axis] * step, *own[axis + 1 :], own[axis])
    return xp.restrided(x, shape, strides)


@unfold.vjp("x")
def unfold_dx(xp, g, x_shape, axis, size, step):
    return xp.unfold_add(g, shape=x_shape, axis=axis, size=size, step=step)


@unfold.batch
def unfold_batch(call, args, batched, size_, *, axis, size, step):
    (x,) = args
    if x.ndim == 1:
        return vocabulary.getitem(vocabulary.reshape(x, shape=(size_, 1)), index=(slice(None), slice(0, size)))
    return call(x, axis=axis + 1, size=size, step=step)


@linear
def unfold_add(xp, g, *, shape, axis, size, step):
    """Add windows up where they were taken from: the transpose of `unfold`."""
    out = xp.module.zeros(shape, "float32" if is_half(g.dtype) else g.dtype)
    if not shape:
        return xp.sum(g, axis=(0,), keepdims=False)
    lead = (slice(None),) * axis
    count = g.shape[axis]
    if count < size:
        last = xp.module.moveaxis(g, -1, axis + 1)
        for k in range(count):
            out[(*lead, slice(k * step, k * step + size))] += last[(*lead, k)]
    else:
        for k in range(size):
            out[(*lead, slice(k, k + (count - 1) * step + 1, step))] += g[..., k]
    return out.astype(g.dtype, copy=False)


@unfold_add.vjp("g")
def unfold_add_dg(xp, g, axis, size, step):
    return xp.copy(xp.unfold(g, axis=axis, size=size, step=step))


@unfold_add.batch
def unfold_add_batch(call, args, batched, size_, *, shape, axis, size, step):
    if not shape:
        return vocabulary.sum(args[0], axis=(1,), keepdims=False)
    return call(args[0], shape=(size_, *shape), axis=axis + 1, size=size, step=step)
