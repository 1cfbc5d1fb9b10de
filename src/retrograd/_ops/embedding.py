"""Rows of a table picked by indices, and rows added to those of a table, which is the transpose."""

from __future__ import annotations

import numpy as np

from .._core.numpy_namespace import is_half
from .._core.primitive import front, linear, vocabulary
from .._core.shown import static
from .index import add_at


def _factors(xp, indices, rows, padding_idx, by_frequency, dtype):
    """Return what gradients of picked rows are multiplied by: 0 at the padding, 1 / frequency; None if all by 1."""
    factors = None
    if padding_idx >= 0:
        factors = (indices % rows != padding_idx).astype(dtype)
    if by_frequency:
        _, places, counts = xp.module.unique(indices, return_inverse=True, return_counts=True)
        rare = (1 / counts).astype(dtype)[places.reshape(indices.shape)]
        factors = rare if factors is None else factors * rare
    return None if factors is None else factors[..., None]


@linear(torch="embedding")
def embedding(xp, x, indices, *, padding_idx, by_frequency):
    """Pick rows; the padding and the frequencies matter to the gradient only."""
    return x.take(indices, 0)


embedding.shows(
    "indices scale_grad_by_freq=by_frequency sparse=False",
    padding_idx=static("padding_idx"),
    weight_sym_argsize_0=lambda node: node.x_shape[0],
)


@embedding.vjp("x")
def embedding_dx(xp, g, indices, x_shape, padding_idx, by_frequency):
    return xp.add_rows(g, indices, rows=x_shape[0], groups=1, padding_idx=padding_idx, by_frequency=by_frequency)


def _spread(x, batched, indices, indices_batched, size, rows):
    """Make one table of a batch of tables, and indices that point into it."""
    indices = front(indices, indices_batched, size)
    first = np.arange(size).reshape(size, *(1,) * (indices.ndim - 1)) * rows
    table = vocabulary.reshape(x, shape=(size * rows, *x.shape[2:])) if batched else x
    return table, indices + first.astype(indices.dtype)


@embedding.batch
def embedding_batch(call, args, batched, size, *, padding_idx, by_frequency):
    x, indices = args
    if batched[0]:
        x, indices = _spread(x, True, indices, batched[1], size, x.shape[1])
    return call(x, indices, padding_idx=padding_idx, by_frequency=by_frequency)


@linear(torch="embedding_dense_backward", shows={"EmbeddingBagBackward0": "sparse=False"})
def add_rows(xp, g, indices, *, rows, groups, padding_idx, by_frequency):
    """Add rows of g to those of `groups` zero tables of as many rows each; indices count through all of them."""
    dtype, row = g.dtype, g.shape[indices.ndim :]
    wide = np.float32 if is_half(dtype) else dtype
    if (factors := _factors(xp, indices, rows, padding_idx, by_frequency, wide)) is not None:
        g = g * factors
    out = xp.module.zeros((groups * rows, *row), wide)
    if g.size:
        add_at(xp, out, (indices.reshape(-1),), g.reshape(-1, *row))
    return out.astype(dtype, copy=False)


@add_rows.vjp("g")
def add_rows_dg(xp, gradient, indices, rows, padding_idx):
    # Not by frequency, as in torch: what comes back to the table through `embedding` itself is divided there.
    return xp.pick_rows(gradient, indices, rows=rows, padding_idx=padding_idx)


@add_rows.batch
def add_rows_batch(call, args, batched, size, *, rows, groups, padding_idx, by_frequency):
    g, indices = args
    indices = _spread(None, False, indices, batched[1], size, rows * groups)[1]
    out = call(
        front(g, batched[0], size), indices, rows=rows, groups=size * groups, padding_idx=padding_idx,
        by_frequency=by_frequency,
    )  # fmt: skip
    return vocabulary.reshape(out, shape=(size, groups * rows, *out.shape[1:]))


@linear
def pick_rows(xp, x, indices, *, rows, padding_idx):
    """Pick rows, and zeros for the padding: the transpose of `add_rows`."""
    out = x.take(indices, 0)
    factors = _factors(xp, indices, rows, padding_idx, False, np.float32 if is_half(x.dtype) else x.dtype)
    return out if factors is None else (out * factors).astype(x.dtype, copy=False)


@pick_rows.vjp("x")
def pick_rows_dx(xp, g, indices, x_shape, rows, padding_idx):
    groups = x_shape[0] // rows
    return xp.add_rows(g, indices, rows=rows, groups=groups, padding_idx=padding_idx, by_frequency=False)


@pick_rows.batch
def pick_rows_batch(call, args, batched, size, *, rows, padding_idx):
    x, indices = args
    if batched[0]:
        x, indices = _spread(x, True, indices, batched[1], size, x.shape[1])
    return call(x, indices, rows=rows, padding_idx=padding_idx)
