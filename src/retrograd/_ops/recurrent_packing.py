"""Packing padded sequences: the entries of a batch that each step has, one after another, and back."""

from __future__ import annotations

from .._core.primitive import linear, vocabulary


@linear(torch="_pack_padded_sequence")
def pack_steps(xp, x, *, sizes):
    """Return the first `sizes[k]` entries of every step k of x (steps, batch, ...), as rows."""
    return xp.module.concatenate([step[:size] for step, size in zip(x, sizes, strict=False)])


@linear(torch="_pad_packed_sequence")
def pad_steps(xp, x, *, sizes, shape):
    """Place rows where they were packed from, in zeros of a shape (steps, batch, ...)."""
    out = xp.module.zeros(shape, x.dtype)
    start = 0
    for step, size in zip(out, sizes, strict=False):
        step[:size] = x[start : start + size]
        start += size
    return out


@pack_steps.vjp("x")
def pack_steps_dx(xp, g, x_shape, sizes):
    return xp.pad_steps(g, sizes=sizes, shape=x_shape)


@pad_steps.vjp("x")
def pad_steps_dx(xp, g, sizes, shape):
    return xp.pack_steps(g, sizes=sizes)


@pack_steps.batch
def pack_steps_batch(call, args, batched, size, *, sizes):
    x = args[0]
    rows = call(vocabulary.permute_dims(x, axes=(1, 2, 0, *range(3, x.ndim))), sizes=sizes)
    return vocabulary.permute_dims(rows, axes=(1, 0, *range(2, rows.ndim)))


@pad_steps.batch
def pad_steps_batch(call, args, batched, size, *, sizes, shape):
    x = args[0]
    rows = vocabulary.permute_dims(x, axes=(1, 0, *range(2, x.ndim)))
    out = call(rows, sizes=sizes, shape=(*shape[:2], size, *shape[2:]))
    return vocabulary.permute_dims(out, axes=(2, 0, 1, *range(3, out.ndim)))
