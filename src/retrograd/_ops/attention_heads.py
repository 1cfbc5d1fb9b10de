"""Attention of several heads side by side in one array, from projections to what the heads found.

Queries, keys and values come as a projection leaves them, (time, batch, features) or (batch, time, features), and the result is
(time, batch, features), as torch's: no step in between is seen, so none is laid out in memory for itself.
"""

from __future__ import annotations

from .._core.fused import fused
from .attention import attend, attend_back, parts

SPLIT = {0: (2, 1, 3, 0, 4), 1: (2, 0, 3, 1, 4)}  # time first, batch first: to (parts, batch, heads, time, width)


def split(x, count, heads, time):
    """View an array of `count` parts side by side as (parts, batch, heads, time, width)."""
    first, second, width = x.shape
    return x.reshape(first, second, count, heads, width // (count * heads)).transpose(SPLIT[time])


def _given(q, k, v):
    """Pair what is given with the number of its parts: keys and values may lie beside the queries, or values beside keys."""
    if k is None:
        return [(q, 3)]
    return [(q, 1), (k, 2)] if v is None else [(q, 1), (k, 1), (v, 1)]


def _one_by_one(stacks):
    return [part for stack in stacks for part in stack]


@fused("ScaledDotProductFlashAttentionForCpuBackward0")
def multi_head(xp, q, k, v, mask, keep, *, heads, scale, kept, time):
    """Attend with every head; `time` is the axis of the sequence in what is given."""
    stacks = [xp.module.ascontiguousarray(split(x, count, heads, time)) for x, count in _given(q, k, v)]
    queries, keys, values = _one_by_one(stacks)
    out = xp.module.empty((queries.shape[2], queries.shape[0], heads * values.shape[-1]), q.dtype)
    kept_arrays = attend(xp, queries, keys, values, mask, keep, scale, kept, split(out, 1, heads, 0)[0])
    return out, (*kept_arrays, *stacks)


@multi_head.backward
def multi_head_back(xp, g, needed, residuals, q, k, v, mask, keep, *, heads, scale, kept, time):
    weights, inverse, *stacks = residuals
    grads, targets = [], []
    for (x, count), need in zip(_given(q, k, v), needed, strict=False):
        grads.append(xp.module.empty(x.shape, x.dtype) if need else None)
        targets += list(split(grads[-1], count, heads, time)) if need else [None] * count
    above, arrays = split(g, 1, heads, 0)[0], _one_by_one(stacks)
    dmask = attend_back(xp, above, needed, (weights, inverse), *arrays, mask, keep, scale, kept, targets)
    if dmask is not None:
        dmask = xp.sum_to(dmask, shape=mask.shape)
    return (*grads, *[None] * (3 - len(grads)), dmask, None)


@multi_head.decomposition
def multi_head_parts(xp, q, k, v, mask, keep, *, heads, scale, kept, time):
    pieces = []
    for x, count in _given(q, k, v):
        first, second, width = x.shape
        stack = xp.reshape(x, shape=(first, second, count, heads, width // (count * heads)))
        stack = xp.permute_dims(stack, axes=SPLIT[time])
        pieces += [xp.getitem(stack, index=(i,)) for i in range(count)]
    found = parts(xp, *pieces, mask, keep, scale, kept)
    back = xp.permute_dims(found, axes=(2, 0, 1, 3))
    first, second, heads, width = back.shape
    return xp.reshape(back, shape=(first, second, heads * width))
