"""Reading and writing at indices, gathering and sorting."""

from __future__ import annotations

from .._core.numpy_namespace import ARRAY, batch_positions, fill_layout
from .._core.primitive import elementwise, front, general, linear, vocabulary


# ---- basic indices: ints, slices, None, Ellipsis ----
@linear(torch="slice")
def getitem(xp, x, *, index):
    return xp.getitem(x, index=index)


@getitem.vjp("x")
def getitem_dx(xp, g, x_shape, index):
    return xp.put_zeros(g, shape=x_shape, index=index)


@getitem.batch
def getitem_batch(call, args, batched, size, *, index):
    return call(args[0], index=(slice(None), *index))


@linear
def put_zeros(xp, g, *, shape, index):
    return xp.put_zeros(g, shape=shape, index=index)


@put_zeros.vjp("g")
def put_zeros_dg(xp, g, index):
    return xp.getitem(g, index=index)


@put_zeros.batch
def put_zeros_batch(call, args, batched, size, *, shape, index):
    return call(args[0], shape=(size, *shape), index=(slice(None), *index))


# ---- integer-array indices; `layout` is the index expression with ARRAY in their places ----
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
    return x[fill_layout(layout, indices)]


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
    return xp.index_add_zeros(g, *indices, shape=shape, layout=layout)


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


# ---- along one axis: gather and scatter ----
@linear(torch="gather")
def take_along(xp, x, indices, *, axis):
    return xp.take_along(x, indices, axis=axis)


@take_along.vjp("x")
def take_along_dx(xp, g, x, indices, axis):
    if getattr(indices, "_array", indices).dtype.kind not in "iu":  # saved-tensor hooks gave back numbers
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    return _scattered(xp, g, indices, axis, tuple(x.shape))  # torch saves x, for its shape


def _rows(array, batched, size):
    """Give an array its batch axis, and its rows at least one axis."""
    array = front(array, batched, size)
    return vocabulary.expand_dims(array, axis=1) if array.ndim == 1 else array


@take_along.batch
def take_along_batch(call, args, batched, size, *, axis):
    x, indices = args
    out = call(_rows(x, batched[0], size), _rows(indices, batched[1], size), axis=axis + 1)
    return out if indices.ndim > batched[1] else vocabulary.squeeze(out, axis=1)


@linear(torch="scatter_add")
def scatter_add_zeros(xp, g, indices, *, axis, shape):
    return xp.scatter_add_zeros(g, indices, axis=axis, shape=shape)


@scatter_add_zeros.vjp("g")
def scatter_add_zeros_dg(xp, g, g_shape, indices, axis):
    taken = xp.take_along(g, indices, axis=axis)
    if tuple(taken.shape) == tuple(g_shape):
        return taken
    return xp.put_zeros(taken, shape=g_shape, index=tuple(slice(0, n) for n in taken.shape))


@scatter_add_zeros.batch
def scatter_add_zeros_batch(call, args, batched, size, *, axis, shape):
    g, indices = (_rows(a, b, size) for a, b in zip(args, batched, strict=True))
    out = call(g, indices, axis=axis + 1, shape=(size, *(shape or (1,))))
    return out if shape else vocabulary.squeeze(out, axis=1)


@general(differentiable=False)
def scatter_mask_zeros(xp, indices, *, axis, shape):
    return xp.scatter_mask_zeros(indices, axis=axis, shape=shape)


@scatter_mask_zeros.batch
def scatter_mask_zeros_batch(call, args, batched, size, *, axis, shape):
    out = call(_rows(args[0], True, size), axis=axis + 1, shape=(size, *(shape or (1,))))
    return out if shape else vocabulary.squeeze(out, axis=1)


@general(torch="scatter")
def scatter_assign(xp, x, indices, src, *, axis):
    return xp.scatter_assign(x, indices, src, axis=axis)


@scatter_assign.vjp("x")
def scatter_assign_dx(xp, g, x_shape, indices, axis):
    return xp.where(xp.scatter_mask_zeros(indices, axis=axis, shape=x_shape), 0, g)


@scatter_assign.vjp("src")
def scatter_assign_dsrc(xp, g, src_shape, indices, axis):
    taken = xp.take_along(g, indices, axis=axis)
    if tuple(taken.shape) == tuple(src_shape):
        return taken
    return xp.put_zeros(taken, shape=src_shape, index=tuple(slice(0, n) for n in taken.shape))


@scatter_assign.jvp
def scatter_assign_jvp(xp, t, x, indices, src, axis):
    tx, _, ts = t
    tx = xp.zeros_like(x) if tx is None else tx
    ts = xp.zeros_like(src) if ts is None else ts
    return xp.scatter_assign(tx, indices, ts, axis=axis)


@scatter_assign.batch
def scatter_assign_batch(call, args, batched, size, *, axis):
    out = call(*[_rows(a, b, size) for a, b in zip(args, batched, strict=True)], axis=axis + 1)
    return out if args[0].ndim > batched[0] else vocabulary.squeeze(out, axis=1)


@general
def scatter_add(xp, x, indices, src, *, axis):
    return (x + xp.scatter_add_zeros(src, indices, axis=axis, shape=x.shape)).astype(x.dtype, copy=False)


scatter_add.vjp("x")(lambda xp, g: g)
scatter_add.vjp("src")(scatter_assign_dsrc)


@scatter_add.jvp
def scatter_add_jvp(xp, t, x, indices, src, axis):
    tx, _, ts = t
    if ts is None:
        return tx
    added = xp.scatter_add_zeros(ts, indices, axis=axis, shape=tuple(x.shape))
    return added if tx is None else tx + added


@scatter_add.batch
def scatter_add_batch(call, args, batched, size, *, axis):
    out = call(*[_rows(a, b, size) for a, b in zip(args, batched, strict=True)], axis=axis + 1)
    return out if args[0].ndim > batched[0] else vocabulary.squeeze(out, axis=1)


# ---- order ----
@general(differentiable=False)
def argsort(xp, x, *, axis, descending, stable):
    return xp.argsort(x, axis=axis, descending=descending, stable=stable)


@argsort.batch
def argsort_batch(call, args, batched, size, *, axis, descending, stable):
    if args[0].ndim == 1:
        return vocabulary.astype(vocabulary.zeros_like(args[0]), dtype="int64")
    return call(args[0], axis=axis + 1, descending=descending, stable=stable)


@general(outputs=2)
def sort(xp, x, *, axis, descending, stable):
    """Sort along an axis; returns values and indices."""
    order = xp.argsort(x, axis=axis, descending=descending, stable=stable)
    return (xp.take_along(x, order, axis=axis) if x.ndim else x.copy()), order


def _integer(indices):
    """Refuse indices that saved-tensor hooks gave back as other numbers."""
    array = getattr(indices, "_array", indices)
    if array.dtype.kind in "iu":
        return indices
    if array.size:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    return array.astype("int64")


def _scattered(xp, g, indices, axis, shape):
    """Add a gradient at indices that may have been changed since forward."""
    at = _integer(indices)
    try:
        return xp.scatter_add_zeros(g, at, axis=axis, shape=shape)
    except IndexError as error:
        raise RuntimeError(str(error).replace("for axis", "for dimension")) from None


@sort.vjp("x")
def sort_dx(xp, g, x_shape, out, axis):
    if g[0] is None:
        return None
    at = _integer(out[1])
    return _scattered(xp, g[0], at, axis, x_shape) if x_shape else xp.copy(g[0])


@sort.jvp
def sort_jvp(xp, t, out, axis):
    return (xp.take_along(t, out[1], axis=axis) if len(t.shape) else t), None


@sort.batch
def sort_batch(call, args, batched, size, *, axis, descending, stable):
    if args[0].ndim == 1:
        return args[0], vocabulary.astype(vocabulary.zeros_like(args[0]), dtype="int64")
    return call(args[0], axis=axis + 1, descending=descending, stable=stable)


def _extreme_at(name, torch):
    """Declare max or min along one axis with indices: the gradient goes to the chosen element alone."""

    def run(xp, x, *, axis, keepdims):
        if not x.ndim:
            return x.copy(), xp.module.zeros((), "int64")
        at = getattr(xp, f"arg{name}")(x, axis=axis, keepdims=True)
        value = xp.take_along(x, at, axis=axis)
        return (value, at) if keepdims else (xp.squeeze(value, axis=axis), xp.squeeze(at, axis=axis))

    run.__name__ = f"{name}_at"
    primitive = general(run, torch=torch, outputs=2)

    def kept(xp, array, axis, keepdims):
        return array if keepdims else xp.expand_dims(array, axis=axis)

    @primitive.vjp("x")
    def dx(xp, g, x_shape, out, axis, keepdims):
        if g[0] is None:
            return None
        at = _integer(out[1])
        if not x_shape:
            return xp.copy(g[0])
        at = kept(xp, at, axis, keepdims)
        return _scattered(xp, kept(xp, g[0], axis, keepdims), at, axis, x_shape)

    @primitive.jvp
    def jvp(xp, t, out, axis, keepdims):
        if not t.shape:
            return t, None
        taken = xp.take_along(t, kept(xp, out[1], axis, keepdims), axis=axis)
        return (taken if keepdims else xp.squeeze(taken, axis=axis)), None

    @primitive.batch
    def batch(call, args, batched, size, *, axis, keepdims):
        if args[0].ndim == 1:
            return args[0], vocabulary.astype(vocabulary.zeros_like(args[0]), dtype="int64")
        return call(args[0], axis=axis + 1, keepdims=keepdims)

    return primitive


max_at = _extreme_at("max", "max")
min_at = _extreme_at("min", "min")


# ---- writing at index arrays, and masks ----
@general
def index_put(xp, x, value, *indices, layout, accumulate):
    out = x.copy()
    where = fill_layout(layout, indices)
    if accumulate:
        xp.module.add.at(out, where, value)
    else:
        out[where] = value
    return out


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


masked_fill = elementwise(
    "masked_fill",
    inputs=("x", "y", "z"),
    implementation=lambda xp, x, mask, value: xp.where(mask, value, x).astype(x.dtype, copy=False),
    dx=lambda xp, g, y: xp.where(_mask(y), 0, g),
    dz=lambda xp, g, y: xp.where(_mask(y), g, 0),
    saved_as={"y": "mask"},
)
