"""Weight normalisation."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import POSITIVE, F, Op, S

REAL = ("float64", "float32", "bfloat16", "float16")


def weight_norm(torch: Any, v: Any, g: Any, dim: int = 0) -> Any:
    """Call it; torch's second derivative fails torch's own gradgradcheck, so torch computes it in steps."""
    return v * (g / torch.norm_except_dim(v, 2, dim)) if torch.__name__ == "torch" else torch._weight_norm(v, g, dim)


OPS: list[Op] = [
    Op(
        "_weight_norm",
        weight_norm,
        (
            S(F(3, 4), F(3, 1)),
            S(F(3, 4), F(1, 4), dim=1),
            S(F(2, 3, 2), F(1, 3, 1), dim=1),
            S(F(2, 3, 2, layout="transposed"), F(2, 1, 1), dim=0),
            S(F(2, 3), F(), dim=-1),
        ),
        domain=((-2.1, -0.4), (0.4, 2.1)),
        oracle_dtypes=REAL,
        same_graph=False,
    ),
    Op(
        "norm_except_dim",
        lambda torch, v, **options: torch.norm_except_dim(v, **options),
        (S(F(3, 4)), S(F(3, 4), dim=1), S(F(2, 3, 2), dim=1), S(F(2, 3), dim=-1), S(F(2, 3), pow=3, dim=0)),
        domain=POSITIVE,
        oracle_dtypes=REAL,
        same_graph=False,
    ),
]
