"""Reading and writing at indices."""

from __future__ import annotations

import math

import numpy as np

from .._core.numpy_namespace import ARRAY, batch_positions, fill_layout, is_half
from .._core.primitive import behind, elementwise, front, general, linear, vocabulary
from .._core.shown import index_tensors
from .._native import gathers
from .._native.program import NATIVE


# ---- basic indices: ints, slices, None, Ellipsis ----
@linear(
    torch="slice",
    shows={None: "dim end self_sym_sizes start step", "SelectBackward0": "dim index=given self_sym_sizes"},
    batch=behind,
    view=True,
)
def getitem(xp, x, *, index):
    return x[(*index, ...)]  # the Ellipsis keeps a 0-d result a view: NumPy would copy it into a scalar


@getitem.vjp("x")
def getitem_dx(xp, g, x_shape, index):
    return xp.put_zeros(g, shape=x_shape, index=index)


@linear(shows={"ConstantPadNdBackward0": "pad"}, batch=behind)
def put_zeros(xp, g, *, shape, index):
    """Write `g` at a basic index of zeros of `shape`: the transpose of `getitem`."""
    out = xp.module.zeros(shape, g.dtype)
    out[index] = g
    return out


@put_zeros.vjp("g")
def put_zeros_dg(xp, g, index):
    return xp.getitem(g, index=index)


# ---- integer-array indices; `layout` is the index expression with ARRAY in their places ----
WHOLE = slice(None)
FEW = 512  # up to here NumPy's own way is quick enough


def add_at(xp, out, where, values):
    """Add values at an index expression of dense memory, repeated places included."""
    rows = _as_rows(out.shape, where) if values.size > FEW and xp.module is np else None
    if rows is None:
        xp.module.add.at(out, where, values if values.dtype == out.dtype else values.astype(out.dtype))
        return
    first, last, shape, index = rows
    outer, size, inner = (math.prod(out.shape[part]) for part in (slice(first), slice(first, last), slice(last, None)))
    full = (*out.shape[:first], *shape, *out.shape[last:])
    if values.shape != full:
        values = np.broadcast_to(values, full)
    values = values.reshape(outer, index.size, inner)
    if gathers.adds(out, values):
        gathers.add_rows(out, index, values)
        return
    # one flat list of places: NumPy's `at` is quick for vectors alone
    places = (np.arange(outer).reshape(outer, 1, 1) * size + index.reshape(-1, 1)) * inner + np.arange(inner)
    np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1).astype(out.dtype, copy=False))


def _as_rows(shape, where):
    """Return which axes index arrays name, as a range, the arrays' shape, and one array in their stead, which counts through these axes.

    None if there are no such axes, or an index is not in them.
    """
    named = [k for k, part in enumerate(where) if type(part) is not slice or part != WHOLE] if 0 not in shape else []
    if not named or any(type(where[k]) is not np.ndarray for k in named) or named[-1] - named[0] >= len(named):
        return None
    index = None
    for k in named:
        part = where[k].astype(np.int64, copy=False)
        if not gathers.are_inside(part, shape[k]):
            part = np.where(part < 0, part + shape[k], part)
            if not gathers.are_inside(part, shape[k]):
                return None
        index = part if index is None else index * shape[k] + part
    return named[0], named[-1] + 1, index.shape, np.ascontiguousarray(index).reshape(-1)


def _places(layout):
    return [i for i, part in enumerate(layout) if part is ARRAY or isinstance(part, int)]


def _is_adjacent(layout):
    places = _places(layout)
    return places[-1] - places[0] == len(places) - 1


def _array_axis(layout):
    """Return the axis of the result at which the index arrays' own axes begin."""
    return _places(layout)[0] if _is_adjacent(layout) else 0


def _batch_indices(arrays, batched, size, rank):
    """Align index arrays of which some are batched: the batch axis first, then `rank` broadcast axes."""
    aligned = []
    for a, b in zip(arrays, batched, strict=True):
        shape = tuple(a.shape)
        if b and a.ndim - 1 < rank:
            a = vocabulary.reshape(a, shape=(size, *(1,) * (rank - a.ndim + 1), *shape[1:]))
        elif not b:
            a = vocabulary.reshape(a, shape=(1, *(1,) * (rank - a.ndim), *shape))
        aligned.append(a)
    return aligned


@linear
def index(xp, x, *indices, layout):
    if len(indices) == 1 and layout[-1] is ARRAY and all(part == WHOLE for part in layout[:-1]):
        return x.take(indices[0], axis=len(layout) - 1)  # quicker than x[..., i]
    return x[fill_layout(layout, indices)]


index.shows("self_sym_sizes", "IndexBackward0", indices=index_tensors)
index.shows("dim self_sym_sizes", "IndexSelectBackward0", index=lambda node: (index_tensors(node) or (None,))[0])
index.shows_edges("MaskedSelectBackward0", 0)


@index.vjp("x")
def index_dx(xp, g, x_shape, indices, layout):
    return xp.index_add_zeros(g, *indices, shape=x_shape, layout=layout)


@index.batch
def index_batch(call, args, batched, size, *, layout):
    x, *arrays = args
    if not any(batched[1:]):
        out = call(x, *arrays, layout=(slice(None), *layout))
        if _is_adjacent(layout):
            return out
        # NumPy puts the axes of index arrays that stand apart first, before the batch
        rank = max(a.ndim for a in arrays)
        return vocabulary.permute_dims(out, axes=(rank, *range(rank), *range(rank + 1, out.ndim)))
    rank = max(a.ndim - b for a, b in zip(arrays, batched[1:], strict=True))
    where = _array_axis(layout)
    arrays = _batch_indices(arrays, batched[1:], size, rank)
    if batched[0]:
        out = call(x, batch_positions(size, rank), *arrays, layout=(ARRAY, *layout))
        contiguous = _array_axis((ARRAY, *layout)) == 0
        at = 0 if contiguous else where + 1
    else:
        out = call(x, *arrays, layout=layout)
        at = where
    # the block [batch, *index axes] stands at `at`; bring the batch to the front and leave the rest at `where`
    order = list(range(out.ndim))
    order.remove(at)
    rest = order
    block = list(range(at + 1, at + 1 + rank))
    others = [i for i in rest if i not in block]
    final = others[:where] + block + others[where:]
    return vocabulary.permute_dims(out, axes=(at, *final))


@linear
def index_add_zeros(xp, g, *indices, shape, layout):
    """Add `g` at integer-array indices of zeros of `shape`: the transpose of `index`."""
    wide = xp.module.float32 if is_half(g.dtype) else g.dtype
    out = xp.module.zeros(shape, wide)
    add_at(xp, out, fill_layout(layout, indices), g)
    return out.astype(g.dtype, copy=False)


@index_add_zeros.vjp("g")
def index_add_zeros_dg(xp, g, indices, layout):
    return xp.index(g, *indices, layout=layout)


@index_add_zeros.batch
def index_add_zeros_batch(call, args, batched, size, *, shape, layout):
    g, *arrays = args
    rank = max(a.ndim - b for a, b in zip(arrays, batched[1:], strict=True))
    where = _array_axis(layout)
    g = front(g, batched[0], size)
    arrays = _batch_indices(arrays, batched[1:], size, rank)
    # the batch index stands first, so the advanced block of the write begins at the front if it is not contiguous
    full = (ARRAY, *layout)
    at = _array_axis(full)
    if at == 0 and where:
        block = list(range(where + 1, where + 1 + rank))
        others = [i for i in range(1, g.ndim) if i not in block]
        g = vocabulary.permute_dims(g, axes=(0, *block, *others))
    return call(g, batch_positions(size, rank), *arrays, shape=(size, *shape), layout=full)


# ---- writing at index arrays, and masks ----
@general
def index_put(xp, x, value, *indices, layout, accumulate):
    out = x.copy()  # dense
    where = indices if len(layout) == 1 else fill_layout(layout, indices)
    if accumulate:
        add_at(xp, out, where, value)
    else:
        out[where] = value
    return out


index_put.shows("accumulate=given", "IndexPutBackward0", indices=index_tensors)


@index_put.vjp("x")
def index_put_dx(xp, g, x_shape, indices, layout, accumulate):
    if accumulate:
        return g
    ones = xp.index(xp.ones_like(g), *indices, layout=layout)
    marks = xp.index_add_zeros(ones, *indices, shape=x_shape, layout=layout)
    return xp.where(xp.not_equal(marks, 0), 0, g)


@index_put.vjp("value")
def index_put_dvalue(xp, g, value_shape, indices, layout):
    return xp.sum_to(xp.index(g, *indices, layout=layout), shape=value_shape)


@index_put.jvp
def index_put_jvp(xp, t, x, value, indices, layout, accumulate):
    tx = xp.zeros_like(x) if t[0] is None else t[0]
    tv = xp.zeros_like(value) if t[1] is None else t[1]
    return xp.index_put(tx, tv, *indices, layout=layout, accumulate=accumulate)


@index_put.batch
def index_put_batch(call, args, batched, size, *, layout, accumulate):
    x, value, *arrays = args
    x = front(x, batched[0], size)
    rank = max(a.ndim - b for a, b in zip(arrays, batched[2:], strict=True))
    where = _array_axis(layout)
    full = (ARRAY, *layout)
    out_rank = rank + (x.ndim - 1) - sum(part is ARRAY for part in layout)
    value = front(value, batched[1], size)
    value = vocabulary.reshape(value, shape=(size, *(1,) * (out_rank - value.ndim + 1), *value.shape[1:]))
    if _array_axis(full) == 0 and where:
        block = list(range(where + 1, where + 1 + rank))
        others = [k for k in range(1, value.ndim) if k not in block]
        value = vocabulary.permute_dims(value, axes=(0, *block, *others))
    arrays = _batch_indices(arrays, batched[2:], size, rank)
    return call(x, value, batch_positions(size, rank), *arrays, layout=full, accumulate=accumulate)


@general
def index_add(xp, x, src, *indices, layout, alpha):
    if alpha == 1 and not is_half(x.dtype):
        out = x.copy()  # dense
        if len(layout) == 1 and src.size <= FEW:
            xp.module.add.at(out, indices[0], src)
        else:
            add_at(xp, out, fill_layout(layout, indices), src)
        return out
    added = xp.index_add_zeros(src, *indices, shape=x.shape, layout=layout)
    return (x + (added if alpha == 1 else added * alpha)).astype(x.dtype, copy=False)


index_add.vjp("x")(lambda xp, g: g)


@index_add.vjp("src")
def index_add_dsrc(xp, g, indices, layout, alpha):
    taken = xp.index(g, *indices, layout=layout)
    return taken if alpha == 1 else taken * alpha


@index_add.jvp
def index_add_jvp(xp, t, x, indices, layout, alpha):
    tx, ts = t[:2]
    if ts is None:
        return tx
    added = xp.index_add_zeros(ts * alpha, *indices, shape=tuple(x.shape), layout=layout)
    return added if tx is None else tx + added


@index_add.batch
def index_add_batch(call, args, batched, size, *, layout, alpha):
    x, src, *arrays = args
    added = index_add_zeros_batch(
        vocabulary.index_add_zeros,
        [src, *arrays],
        batched[1:],
        size,
        shape=tuple(x.shape[1:] if batched[0] else x.shape),
        layout=layout,
    )
    return front(x, batched[0], size) + (added if alpha == 1 else added * alpha)


def _mask(y):
    """Refuse a mask that saved-tensor hooks gave back as numbers."""
    dtype = getattr(y, "_array", y).dtype
    if dtype.kind != "b":
        name = {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {name}")
    return y


def _masked_fill(xp, x, mask, value):
    if x.shape == mask.shape and x.shape and not value.ndim:
        if value.dtype is not x.dtype:
            value = value.astype(x.dtype)
        if x.size < NATIVE:
            out = x.copy()
            xp.module.putmask(out, mask, value)  # which takes half as long as `where`
            return out
    return xp.where(mask, value, x).astype(x.dtype, copy=False)


masked_fill = elementwise(
    "masked_fill",
    inputs=("x", "y", "z"),
    implementation=_masked_fill,
    dx=lambda xp, g, y: xp.where(_mask(y), 0, g),
    dz=lambda xp, g, y: xp.where(_mask(y), g, 0),
    shows="mask=y",
)
masked_fill.dense = True
masked_fill.shows_edges("MaskedFillBackward0", 0)
masked_fill.shows_edges("IndexFillBackward0", 0)
