"""Attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.opinfo import F, K, Op, S

LOWER = np.tri(3, 4, dtype=bool)
BLIND = np.array([[True, True, False, True], [False] * 4, [True] * 4])  # the second query may look at nothing
T = "transposed"


def attend(torch: Any, q: Any, k: Any, v: Any, mask: Any = None, **options: Any) -> Any:
    if mask is not None and mask.dtype.is_floating_point:
        mask = mask.to(q.dtype)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, **options)


def heads(torch: Any, x: Any, weight: Any, bias: Any, out: Any, mask: Any = None, **options: Any) -> Any:
    """Let a sequence look at itself."""
    found, weights = torch.nn.functional.multi_head_attention_forward(
        x, x, x, 4, 2, weight, bias, None, None, False, 0.0, out, None, attn_mask=mask, **options
    )
    return found if weights is None else (found, weights)


def added_heads(torch: Any, x: Any, y: Any, weight: Any, extra: Any, out: Any) -> Any:
    """Let a sequence look at another, at a key of its own and at zeros."""
    return torch.nn.functional.multi_head_attention_forward(
        x, y, y, 4, 2, weight, None, extra, extra * 0.5, True, 0.0, out, None, need_weights=False
    )[0]


OPS = [
    Op(
        "scaled_dot_product_attention",
        attend,
        (
            S(F(3, 2), F(4, 2), F(4, 5)),
            S(F(2, 3, 2), F(2, 4, 2), F(2, 4, 2)),
            S(F(2, 1, 3, 2), F(2, 1, 4, 2), F(2, 1, 4, 2)),
            S(F(2, 3, 2, layout=T), F(2, 4, 2, layout=T), F(2, 4, 3)),
            S(F(2, 1, 3, 2), F(2, 4, 2), F(4, 2)),
            S(F(3, 2), F(4, 2), F(4, 2), scale=0.3),
            S(F(3, 2), F(3, 2), F(3, 2), is_causal=True),
            S(F(3, 2), F(4, 2), F(4, 2), K(LOWER, batched=False)),
            S(F(3, 2), F(4, 2), F(4, 2), K(BLIND, batched=False)),
            S(F(3, 2), F(4, 2), F(4, 2), F(3, 4)),
            S(F(2, 3, 2), F(2, 4, 2), F(2, 4, 2), F(4)),
            S(F(1, 4, 3, 2), F(1, 2, 4, 2), F(1, 2, 4, 2), enable_gqa=True),
            S(F(3, 2), F(0, 2), F(0, 2)),
            S(F(0, 2), F(3, 2), F(3, 2)),
        ),
        same_graph=False,
    ),
    Op(
        "attention_far_from_zero",  # the maximum of each row is taken off
        attend,
        (
            S(F(3, 2), F(4, 2), F(4, 2), scale=40.0),
            S(F(3, 2), F(4, 2), F(4, 2), K(BLIND, batched=False), scale=40.0),
            S(F(3, 2), F(4, 2), F(4, 2), F(3, 4), scale=40.0),
        ),
        same_graph=False,
        oracle_dtypes=("float64", "float32"),  # half precision is too coarse for such scores
        domain=((-0.6, 0.6),),
    ),
    Op(
        "multi_head_attention",
        heads,
        (
            S(F(3, 2, 4), F(12, 4), F(12), F(4, 4)),
            S(F(3, 2, 4), F(12, 4), F(12), F(4, 4), need_weights=False),
            S(F(3, 2, 4), F(12, 4), F(12), F(4, 4), F(3, 3), need_weights=False),
            S(F(3, 2, 4), F(12, 4), F(12), F(4, 4), F(4, 3, 3), average_attn_weights=False),
            S(F(3, 4), F(12, 4), F(12), F(4, 4), need_weights=False),
        ),
        domain=((-1.1, 1.1),),
        same_graph=False,
    ),
    Op(
        "multi_head_attention_with_more_keys",
        added_heads,
        (S(F(3, 2, 4), F(5, 2, 4), F(12, 4), F(1, 1, 4), F(4, 4)),),
        domain=((-1.1, 1.1),),
        same_graph=False,
    ),
]
