"""Attention whose scores and masks are functions of batch, head, query and key, each a number to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _dtypes
from ..._public import set_all
from ...func import vmap
from ...tensor._functions.creation import ones, zeros_like
from ...tensor._functions.elementwise import where
from ...tensor._functions.matrix_products import matmul
from ...tensor._functions.ranges import arange
from ...tensor._functions.rearrange import constant_pad_nd, repeat_interleave
from ...tensor._functions.reduce import logsumexp, softmax

Mod = Callable[..., Any]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _over_positions(mod: Mod, sizes: tuple[int, int, int, int], device: Any, score: Any = None) -> Any:
    """Call a function for every batch, head, query and key; with the score there, if it takes one."""
    first = () if score is None else (0,)
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        mod = vmap(mod, in_dims=(*first, *dims))
    places = [arange(size, device=device) for size in sizes]
    return mod(*places) if score is None else mod(score, *places)


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Allow every query every key."""
    return ones((), dtype=_dtypes.bool_, device=batch.device)


def and_masks(*mask_mods: Mod) -> Mod:
    """Return a mask that allows what all of some allow."""
    return _combined(mask_mods, lambda one, other: one & other)


def or_masks(*mask_mods: Mod) -> Mod:
    """Return a mask that allows what any of some allows."""
    return _combined(mask_mods, lambda one, other: one | other)


def _combined(mods: tuple[Mod, ...], join: Mod) -> Mod:
    if not all(callable(mod) for mod in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def combined(b: Any, h: Any, q: Any, kv: Any) -> Any:
        found = mods[0](b, h, q, kv)
        for mod in mods[1:]:
            found = join(found, mod(b, h, q, kv))
        return found

    return combined


def create_mask(mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Any:  # noqa: N803
    """Write a mask out: True where a query may look at a key."""
    return _over_positions(mod_fn, (B or 1, H or 1, Q_LEN, KV_LEN), device).expand(B or 1, H or 1, Q_LEN, KV_LEN)


class AuxRequest(NamedTuple):
    """What `flex_attention` shall return besides its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returns besides its result: logarithms of the sums of weights, and largest scores."""

    lse: Any = None
    max_scores: Any = None


class BlockMask:
    """A mask, and which blocks of queries and keys it leaves anything of."""

    def __init__(self, mask_mod: Mod, shape: tuple[int, int, int, int], block: tuple[int, int], device: Any) -> None:
        self.mask_mod = mask_mod
        self.shape = shape
        self.seq_lengths = shape[2:]
        self.BLOCK_SIZE = block
        mask = create_mask(mask_mod, *shape, device=device)
        rows, columns = (-(-size // side) for size, side in zip(shape[2:], block, strict=True))
        mask = constant_pad_nd(mask, (0, columns * block[1] - shape[3], 0, rows * block[0] - shape[2]), False)
        blocks = mask.view(*shape[:2], rows, block[0], columns, block[1])
        self._dense = blocks.any(5).any(3).to(_dtypes.int32)

    def to_dense(self) -> Any:
        """Return 1 for each block that is not masked out entirely."""
        return self._dense

    def numel(self) -> int:
        """Return the number of places."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of blocks that are masked out entirely."""
        return 100 * (1 - float(self._dense.sum().item()) / float(self._dense.numel()))

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Mod,
    B: int | None,  # noqa: N803 - torch's name
    H: int | None,  # noqa: N803 - torch's name
    Q_LEN: int,  # noqa: N803 - torch's name
    KV_LEN: int,  # noqa: N803 - torch's name
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,  # noqa: N803 - torch's name
) -> BlockMask:
    """Make a mask of a function of batch, head, query and key."""
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block, device)


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attend with scores changed by `score_mod(score, batch, head, query, key)`, where a mask allows it."""
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = (repeat_interleave(one, groups, 1) for one in (key, value))
    elif query.shape[1] != key.shape[1]:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and "
            f"Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
        )
    dtype = query.dtype
    wide = _dtypes.float32 if dtype.itemsize == 2 else dtype
    scores = matmul(query.to(wide), key.to(wide).mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = _over_positions(score_mod, tuple(scores.shape), query.device, scores)
    if block_mask is not None:
        allowed = create_mask(block_mask.mask_mod, *block_mask.shape, device=query.device)
        scores = scores.masked_fill(~allowed, -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    weights = where(blind, zeros_like(scores), softmax(scores.masked_fill(blind, 0), -1))
    out = matmul(weights, value.to(wide)).to(dtype)
    if return_aux is not None:
        lse = logsumexp(scores, -1) if return_aux.lse else None
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (out, logsumexp(scores, -1)) if return_lse else out


set_all(globals())
