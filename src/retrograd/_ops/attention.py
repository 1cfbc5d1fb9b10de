"""Scaled dot-product attention: softmax(q kᵀ scale + mask) v.

Note [Attention in few passes]
Rule 1. The exponentials of the scores are kept unnormalised, beside one number for each query: the reciprocal of their sum. So the
        largest arrays (queries times keys) are never divided; the result and the gradient that arrives, much smaller, are.
Rule 2. Scores near 0, which is nearly all that occur, need no shift by their maximum, and a mask is a factor of exponentials:
        1 or 0 for a boolean one, exp(mask) for one that is added.
Rule 3. Keys and values are transposed in memory before products by their transposes, at which OpenBLAS takes twice as long.
Rule 4. A block of heads is taken through all steps before the next one, so that its scores stay in the processor's cache; blocks
        are shared out among threads.
Rule 5. A query that may look at no key gets zeros, as torch's.
"""

from __future__ import annotations

import math

import numpy as np

from .._core import parallel, passes
from .._core.fused import fused
from .._thresholds import ATTENTION_BLOCK as BLOCK
from .._thresholds import EXPONENTIALS_KEPT as MOST
from .._thresholds import WIDE_ATTENTION as MANY
from . import softmax as _softmax  # noqa: F401 - the decomposition uses its primitive

NEAR = 20  # how far from 0 scores, and masks, may lie to need no shift


def blocks(lead, size):
    """Cut leading axes into blocks of at most BLOCK scores, of which each index has `size`: tuples of slices."""
    if not lead or math.prod(lead) * size <= BLOCK:
        yield ()
        return
    inner = math.prod(lead[1:]) * size
    step = max(1, BLOCK // max(inner, 1))
    for at in range(0, lead[0], step):
        for rest in blocks(lead[1:], size) if step == 1 else ((),):
            yield (slice(at, at + step), *rest)


def over_blocks(xp, work, lead, size):
    """Call `work(block)` for the blocks of leading axes, on several threads where there is much to do; a GPU takes one."""
    if xp.module is not np:
        work(())
        return
    found = list(blocks(lead, size))
    many = len(found) > 1 and math.prod(lead) * size >= MANY
    parallel.over_blocks(lambda k, _: work(found[k]), len(found), 1, many)


def mask_part(mask, block, rank):
    """Return the part of a mask for a block of `rank` leading axes, of which the mask may lack some."""
    missing = rank + 2 - mask.ndim
    return mask[
        tuple(slice(None) if mask.shape[i - missing] == 1 else block[i] for i in range(max(missing, 0), len(block)))
    ]


def as_factor(xp, mask, dtype):
    """Return what a mask multiplies exponentials by; None if it is to be added to the scores instead."""
    if mask.dtype.kind == "b":
        return mask.astype(dtype)
    if xp.module is not np or not mask.size:
        return None
    lowest = mask.min()
    if lowest == -np.inf:
        lowest = np.where(mask == lowest, 0, mask).min()
    return np.exp(mask).astype(dtype, copy=False) if lowest >= -NEAR and mask.max() <= NEAR else None


def as_addend(xp, mask, dtype):
    """Return what a mask adds to scores."""
    if mask.dtype.kind != "b":
        return mask
    return xp.module.where(mask, xp.module.zeros((), dtype), xp.module.full((), -np.inf, dtype))


def transposed(xp, x, factor=1.0):
    """Transpose the last two axes in memory, and multiply."""
    out = xp.module.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    return xp.module.multiply(x.swapaxes(-1, -2), factor, out=out)


class Scores:
    """Computes the exponentials of scores, block by block."""

    def __init__(self, xp, q, k, mask, scale):
        self.xp, self.q, self.k, self.mask, self.scale = xp, q, k, mask, scale
        self.factor = None if mask is None else as_factor(xp, mask, q.dtype)
        self.fits = xp.module is np and (mask is None or self.factor is not None)

    def exponentials(self, block, out=None):
        """Return exp(score) of a block, up to a factor for each query; see rule 2 of the note."""
        module, rank = self.xp.module, self.q.ndim - 2
        scores = module.matmul(self.q[block], transposed(self.xp, self.k[block], self.scale), out=out)
        if not scores.size:
            return scores
        if self.fits and scores.max() <= NEAR and scores.min() >= -NEAR:
            np.exp(scores, out=scores)
            if self.factor is not None:
                scores *= mask_part(self.factor, block, rank)
            return scores
        if self.mask is not None:
            scores += as_addend(self.xp, mask_part(self.mask, block, rank), scores.dtype)
        top = scores.max(-1, keepdims=True)
        top[top == -np.inf] = 0
        scores -= top
        return module.exp(scores, out=scores)


def row_sums(xp, x):
    """Sum over the last axis, which stays."""
    if xp.module is not np or not x.size:
        return x.sum(-1, keepdims=True)
    return (x.reshape(-1, x.shape[-1]) @ passes.ones(x.shape[-1], x.dtype)).reshape(*x.shape[:-1], 1)


def attend(xp, q, k, v, mask, keep, scale, kept, out):
    """Write the attention of dense arrays of the same leading axes into `out`; return exponentials and reciprocals of sums.

    `keep` is 1 where dropout keeps a weight, 0 elsewhere; `kept` the part of the weights it keeps.
    """
    module = xp.module
    lead, shape = q.shape[:-2], (*q.shape[:-1], k.shape[-2])
    scores = Scores(xp, q, k, mask, scale)
    weights = module.empty(shape, q.dtype) if math.prod(shape) <= MOST else None
    inverse = module.empty((*shape[:-1], 1), q.dtype)

    def work(block):
        powers = scores.exponentials(block, None if weights is None else weights[block])
        sums = row_sums(xp, powers)
        sums[sums == 0] = 1
        if keep is not None:
            powers = powers * keep[block]
        found = module.matmul(powers, v[block])
        module.divide(found, sums if kept == 1 else sums * kept, out=out[block])
        module.divide(1, sums, out=inverse[block])

    over_blocks(xp, work, lead, shape[-2] * shape[-1])
    return weights, inverse


def attend_back(xp, g, needed, residuals, q, k, v, mask, keep, scale, kept, targets):
    """Write the gradients of q, k and v into `targets` (None where not needed); return the scores' own if the mask needs it.

    With weights p = e / s and G = g / (s kept): dv = (e keep)ᵀ G, and the scores get e (keep (G vᵀ) - sum(e keep (G vᵀ)) / s).
    """
    module = xp.module
    weights, inverse = residuals
    lead, shape = q.shape[:-2], (*q.shape[:-1], k.shape[-2])
    dq, dk, dv = targets
    scores = Scores(xp, q, k, mask, scale) if weights is None else None
    dmask = module.empty(shape, q.dtype) if needed[3] else None
    scored = dq is not None or dk is not None or dmask is not None

    def work(block):
        powers = weights[block] if scores is None else scores.exponentials(block)
        share = inverse[block] if kept == 1 else inverse[block] / kept
        above = module.multiply(g[block], share, out=module.empty(g[block].shape, q.dtype))
        if dv is not None:
            dropped = powers if keep is None else powers * keep[block]
            module.matmul(dropped.swapaxes(-1, -2), above, out=dv[block])
        if not scored:
            return
        moved = module.matmul(above, transposed(xp, v[block], scale))
        if keep is not None:
            moved *= keep[block]
        moved -= inner(xp, moved, powers) * inverse[block]
        moved *= powers
        if dq is not None:
            module.matmul(moved, k[block], out=dq[block])
        if dk is not None:
            module.matmul(moved.swapaxes(-1, -2), q[block], out=dk[block])
        if dmask is not None:
            module.divide(moved, scale, out=dmask[block])

    over_blocks(xp, work, lead, shape[-2] * shape[-1])
    return dmask


def inner(xp, x, y):
    """Multiply rows by rows, and keep the axis."""
    if xp.module is np:
        return np.vecdot(x, y)[..., None]
    return (x * y).sum(-1, keepdims=True)


# ---- the public operation: any leading axes, which broadcast ----
def _leading(q, k, v, groups):
    """Return the leading axes of the result."""
    lead = [x.shape[:-2] for x in (q, k, v)]
    if groups > 1:
        lead[1:] = [(*one[:-1], one[-1] * groups) for one in lead[1:]]
    return np.broadcast_shapes(*lead)


def _spread(xp, q, k, v, keep, groups):
    """Give all arrays the same leading axes, in dense memory."""
    lead = _leading(q, k, v, groups)
    if groups > 1:
        k, v = (xp.module.repeat(x, groups, axis=-3) for x in (k, v))
    return [
        x
        if x is None
        else xp.module.ascontiguousarray(
            x if x.shape[:-2] == lead else xp.module.broadcast_to(x, (*lead, *x.shape[-2:]))
        )
        for x in (q, k, v, keep)
    ]


@fused("ScaledDotProductFlashAttentionForCpuBackward0", shows="attn_mask=mask key=k query=q value=v")
def attention(xp, q, k, v, mask, keep, *, scale, kept, groups):
    """Attend; every `groups` heads of queries in a row share a head of keys and values."""
    dense_q, dense_k, dense_v, keep = _spread(xp, q, k, v, keep, groups)
    shape = (*dense_q.shape[:-1], v.shape[-1])
    # As torch's fused kernel, which lays the result out as the queries: heads that came by a transpose go back without a copy.
    out = (
        xp.module.empty_like(q)
        if q.ndim == 4 and shape == q.shape and keep is None
        else xp.module.empty(shape, q.dtype)
    )
    return out, attend(xp, dense_q, dense_k, dense_v, mask, keep, scale, kept, out)


@attention.backward
def attention_back(xp, g, needed, residuals, q, k, v, mask, keep, *, scale, kept, groups):
    dense_q, dense_k, dense_v, keep = arrays = _spread(xp, q, k, v, keep, groups)
    targets = [
        xp.module.empty(x.shape, x.dtype) if need else None for x, need in zip(arrays[:3], needed[:3], strict=True)
    ]
    dmask = attend_back(xp, g, needed, residuals, dense_q, dense_k, dense_v, mask, keep, scale, kept, targets)
    if groups > 1:
        targets[1:] = [None if x is None else _add_groups(x, groups) for x in targets[1:]]
    targets = [x if x is None else xp.sum_to(x, shape=own.shape) for x, own in zip(targets, (q, k, v), strict=True)]
    return (*targets, None if dmask is None else xp.sum_to(dmask, shape=mask.shape), None)


def _add_groups(x, groups):
    return x.reshape(*x.shape[:-3], x.shape[-3] // groups, groups, *x.shape[-2:]).sum(-3)


@attention.decomposition
def attention_parts(xp, q, k, v, mask, keep, *, scale, kept, groups):
    if groups > 1:
        k, v = (_repeated(xp, x, groups) for x in (k, v))
    return parts(xp, q, k, v, mask, keep, scale, kept)


def _repeated(xp, x, groups):
    *lead, heads, length, width = x.shape
    wide = xp.broadcast_to(xp.expand_dims(x, axis=len(lead) + 1), shape=(*lead, heads, groups, length, width))
    return xp.reshape(wide, shape=(*lead, heads * groups, length, width))


def swapped(xp, x):
    """Swap the last two axes."""
    rank = len(x.shape)
    return xp.permute_dims(x, axes=(*range(rank - 2), rank - 1, rank - 2))


def _is_bias(mask):
    """Tell whether a mask is added; dtypes are torch's or NumPy's."""
    return getattr(mask.dtype, "numpy", mask.dtype).kind in "fV"


def parts(xp, q, k, v, mask, keep, scale, kept):
    """Attend in words of `xp`."""
    scores = xp.matmul(q * scale, swapped(xp, k))
    if mask is not None:
        scores = scores + mask if _is_bias(mask) else xp.where(mask, scores, -math.inf)
    axis = len(scores.shape) - 1
    blind = xp.all(xp.equal(scores, -math.inf), axis=(axis,), keepdims=True)
    weights = xp.where(blind, 0, xp.softmax(xp.where(blind, 0, scores), axis=axis))
    if keep is not None:
        weights = weights * keep * (1 / kept)
    return xp.matmul(weights, v)


# ---- several heads side by side in one array, from projections to what the heads found ----
# Queries, keys and values come as a projection leaves them, (time, batch, features) or (batch, time, features), and the result is
# (time, batch, features), as torch's: no step in between is seen, so none is laid out in memory for itself.
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
