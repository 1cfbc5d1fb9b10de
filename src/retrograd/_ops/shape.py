"""Shape: linear operations that move values without changing them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import behind, elementwise, linear, unmoved, vocabulary
from .._native import turning
from .._thresholds import NATIVE


def _axis(axis, ndim):
    return axis + ndim if axis < 0 else axis


@linear(torch="view", shows="self_sym_sizes", batch=behind, view=True)
def reshape(xp, x, *, shape):
    return xp.reshape(x, shape)


@reshape.vjp("x")
def reshape_dx(xp, g, x_shape):
    return xp.reshape(g, shape=x_shape)


@linear(
    torch="permute",
    shows={
        None: "dims",
        "TransposeBackward0": "dim0 dim1",
        "TransposeBackward1": "dim0 dim1",
        "TBackward0": "",
        "TBackward1": "",
    },
    view=True,
)
def permute_dims(xp, x, *, axes):
    return x.transpose(axes)


@permute_dims.vjp("x")
def permute_dims_dx(xp, g, axes):
    back = [0] * len(axes)
    for i, axis in enumerate(axes):
        back[axis] = i
    return xp.permute_dims(g, axes=tuple(back))


@permute_dims.batch
def permute_dims_batch(call, args, batched, size, *, axes):
    return call(args[0], axes=(0, *(axis + 1 for axis in axes)))


@linear(torch="expand", shows="self_sym_sizes", view=True)
def broadcast_to(xp, x, *, shape):
    if xp is not numpy_namespace or not x.size:
        return xp.broadcast_to(x, shape)
    lead = len(shape) - x.ndim
    if x.shape == shape[lead:] and 1 not in shape[:lead]:
        if x.flags.c_contiguous and x.dtype.kind != "V" and 0 not in shape:
            return np.ndarray(shape, x.dtype, x, 0, (0,) * lead + x.strides)  # as `restrided` does
        return xp.restrided(x, shape, (0,) * lead + x.strides)
    strides = [0] * len(shape)
    for k in range(len(shape) - 1, -1, -1) if x.ndim else ():  # torch's strides: 0 only where the size changes
        if k >= lead:
            strides[k] = x.strides[k - lead] if x.shape[k - lead] == shape[k] else 0
        elif shape[k] == 1:
            strides[k] = shape[k + 1] * strides[k + 1]
    return xp.restrided(x, shape, strides)  # writable, unlike NumPy's: the tensor layer knows when to refuse


@broadcast_to.vjp("x")
def broadcast_to_dx(xp, g, x_shape):
    if tuple(g.shape) == tuple(x_shape):
        return g if len(x_shape) else xp.copy(g)  # torch returns a view, but sums a number
    return xp.sum_to(g, shape=x_shape)


@broadcast_to.batch
def broadcast_to_batch(call, args, batched, size, *, shape):
    (x,) = args
    lead = len(shape) - (x.ndim - 1)
    x = vocabulary.reshape(x, shape=(size, *(1,) * lead, *x.shape[1:]))
    return call(x, shape=(size, *shape))


@linear(may_alias=True)
def sum_to(xp, x, *, shape):
    """Sum away what broadcasting added, so that the result has `shape`."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and x.shape[i + lead] != 1)
    return xp.sum(x, axis=axes, keepdims=True).reshape(shape) if axes else x


@sum_to.vjp("x")
def sum_to_dx(xp, g, x_shape):
    return xp.broadcast_to(g, shape=x_shape)


@sum_to.batch
def sum_to_batch(call, args, batched, size, *, shape):
    (x,) = args
    lead = x.ndim - 1 - len(shape)
    if lead:
        x = vocabulary.sum(x, axis=tuple(range(1, 1 + lead)), keepdims=False)
    return call(x, shape=(size, *shape))


@linear(torch="unsqueeze", shows="dim", view=True)
def expand_dims(xp, x, *, axis):
    # NumPy would choose other strides than torch for one element, and for a new last axis
    if xp is numpy_namespace and x.ndim and (x.size == 1 or (axis == x.ndim and x.size and not x.flags.c_contiguous)):
        step = x.shape[axis] * x.strides[axis] if axis < x.ndim else x.itemsize
        strides = (*x.strides[:axis], step, *x.strides[axis:])
        return xp.restrided(x, (*x.shape[:axis], 1, *x.shape[axis:]), strides)
    return x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))


@expand_dims.vjp("x")
def expand_dims_dx(xp, g, x_shape):
    return xp.reshape(g, shape=x_shape)


@expand_dims.batch
def expand_dims_batch(call, args, batched, size, *, axis):
    return call(args[0], axis=_axis(axis, args[0].ndim) + 1)


@linear(
    shows={
        None: "self_sym_sizes",
        "SqueezeBackward1": "dim self_sym_sizes",
        "SqueezeBackward2": "dim self_sym_sizes",
        "SqueezeBackward4": "dim self_sym_sizes",
    },
    view=True,
)
def squeeze(xp, x, *, axis):
    return x.squeeze(axis) if axis != () else x[...]  # a view is never the array itself


@squeeze.vjp("x")
def squeeze_dx(xp, g, x_shape):
    return g if tuple(g.shape) == tuple(x_shape) else xp.reshape(g, shape=x_shape)


@squeeze.batch
def squeeze_batch(call, args, batched, size, *, axis):
    ndim = args[0].ndim - 1
    axes = axis if isinstance(axis, tuple) else (axis,)
    return call(args[0], axis=tuple(_axis(a, ndim) + 1 for a in axes))


@linear(shows="dims", batch=behind, dense=True)
def flip(xp, x, *, axis):
    back = [slice(None)] * x.ndim
    for k in axis:
        back[k] = slice(None, None, -1)
    return x[tuple(back)].copy()  # a view in NumPy; torch knows no negative strides


@flip.vjp("x")
def flip_dx(xp, g, axis):
    return xp.flip(g, axis=axis)


@linear(torch="cat", shows="dim", batch=behind, dense=True)
def concat(xp, *arrays, axis):
    return xp.module.concatenate(arrays, axis=axis)


@concat.vjp("arrays")
def concat_dx(xp, g, arrays_shape, axis):
    grads, start = [], 0
    for shape in arrays_shape:
        if len(shape) != g.ndim:  # torch lets an empty vector stand among tensors of any rank
            grads.append(xp.reshape(xp.getitem(g, index=(slice(0, 0),) * g.ndim), shape=shape))
            continue
        # even where no gradient is needed, as torch: a node's hooks see them all
        stop = start + shape[axis]
        index = (slice(None),) * axis + (slice(start, stop),)
        grads.append(xp.getitem(g, index=index))
        start = stop
    return tuple(grads)


@linear(batch=behind, view=True)
def view_as_real(xp, x):
    """The real and imaginary parts as a last axis: the same memory, read as pairs."""
    x = xp.module.asarray(x)  # a scalar has no memory to read
    return x[..., None].view(x.real.dtype)


@view_as_real.vjp("x")
def view_as_real_dx(xp, g):
    lead = (slice(None),) * (g.ndim - 1)
    return xp.getitem(g, index=(*lead, 0)) + 1j * xp.getitem(g, index=(*lead, 1))


@linear(torch="_to_copy", batch=unmoved, may_alias=True, dense=False)
def astype(xp, x, *, dtype):
    return xp.astype(x, dtype=dtype)


@astype.vjp("x")
def astype_dx(xp, g):
    return g  # the edge brings it back to the input's dtype


@linear(torch="clone", shows={"IndexSelectBackward0": "dim index"}, batch=behind)
def copy(xp, x):
    return _copied(x, "C")


def _copied(x, order):
    """Copy; NumPy moves dtypes that are not its own one by one, and the same bits as integers ten times as quickly."""
    if order == "C" and x.size >= NATIVE and (turned := turning.copied(x)) is not None:
        return turned
    if x.dtype.kind == "V" and x.dtype.itemsize == 2 and not x.flags.c_contiguous:
        return x.view("u2").copy(order).view(x.dtype)
    return x.copy(order)


copy.vjp("x")(lambda xp, g: g)


@linear(torch="clone", batch=behind, dense=False)
def copy_in_order(xp, x):
    """Copy into dense memory that has the order of the array's strides."""
    return _copied(x, "K")


copy_in_order.vjp("x")(lambda xp, g: g)
alias = elementwise("alias", dx=lambda xp, g: g, implementation=lambda xp, x: x[...], view=True)


FEW = 1024  # elements up to which what is outside of a triangle is overwritten


@lru_cache(maxsize=64)
def _outside(rows, columns, upper, k):
    """Mark the elements outside of the upper or lower triangle."""
    lower = np.tri(rows, columns, k - 1 if upper else k, bool)
    return lower if upper else ~lower


@linear(shows="diagonal=k", batch=unmoved, dense=True)
def triangle(xp, x, *, upper, k):
    if xp is numpy_namespace and x.size <= FEW and x.flags.c_contiguous:
        out = x.copy()
        outside = _outside(*x.shape[-2:], upper, k)
        out[outside if x.ndim == 2 else (..., outside)] = 0
        return out
    return xp.triangle(x, upper=upper, k=k)


@triangle.vjp("x")
def triangle_dx(xp, g, upper, k):
    return xp.triangle(g, upper=upper, k=k)


@linear(shows="dim", batch=behind, dense=True)
def stack(xp, *arrays, axis):
    shape = arrays[0].shape
    if axis == len(shape):
        return xp.module.concatenate([a.reshape((*shape, 1)) for a in arrays], axis=axis)
    joined = xp.module.concatenate(arrays, axis=axis)
    return joined.reshape((*shape[:axis], len(arrays), *shape[axis:]))


@stack.vjp("arrays")
def stack_dx(xp, g, arrays_shape, axis):
    index = (slice(None),) * axis
    return tuple(xp.getitem(g, index=(*index, k)) for k in range(len(arrays_shape)))


@linear(shows="dim1 dim2 offset=given self_sym_sizes", batch=behind, view=True)
def diagonal(xp, x, *, offset, axis1, axis2):
    out = x.diagonal(offset, axis1, axis2)
    if xp is numpy_namespace and x.flags.writeable:
        out.setflags(True)  # NumPy's caution; torch's diagonal is a writable view
    return out


@diagonal.vjp("x")
def diagonal_dx(xp, g, x_shape, offset, axis1, axis2):
    return xp.put_diagonal(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


@linear(shows={"DiagEmbedBackward0": "dim1 dim2 offset=given"}, batch=behind)
def put_diagonal(xp, g, *, shape, offset, axis1, axis2):
    """Write `g` on a diagonal of zeros of `shape`: the transpose of `diagonal`."""
    out = xp.module.zeros(shape, g.dtype)
    part = out.diagonal(offset, axis1, axis2)
    if xp.module is np:
        part.flags.writeable = True  # NumPy is cautious, without need
    part[...] = g
    return out


@put_diagonal.vjp("g")
def put_diagonal_dg(xp, g, offset, axis1, axis2):
    return xp.diagonal(g, offset=offset, axis1=axis1, axis2=axis2)


# ---- what in-place writes record: the old value gets no gradient ----
forget = elementwise("forget", implementation=lambda xp, x: x, dx=lambda xp, g: xp.zeros_like(g))
overwrite = elementwise(
    "overwrite",
    implementation=lambda xp, x, y: xp.where(xp.equal(xp.zeros_like(x), 0), y, x).astype(x.dtype, copy=False),
    dx=lambda xp, g: xp.zeros_like(g),
    dy=lambda xp, g: g,
)
