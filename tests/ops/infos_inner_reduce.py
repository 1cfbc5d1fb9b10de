"""Operations that rules of reductions, of running functions and of orders call."""

from __future__ import annotations

from typing import Any

from retrograd._core.primitive import vocabulary as xp
from tests.ops.opinfo import EVERYWHERE, NOT_ZERO, Domain, F, K, Op, S, Sample

OPS: list[Op] = []


def op(name: str, call: Any, *samples: Sample, complex: bool = False, domain: Domain = EVERYWHERE) -> None:
    """Add an operation that torch does not have."""
    OPS.append(Op(name, call, samples, complex=complex, domain=domain, oracle_dtypes=()))


PAIRS = (S(F(3), F(3), axis=0), S(F(2, 3), F(2, 3), axis=1), S(F(2, 3), F(2, 3, layout="transposed"), axis=0))
NUMBER = S(F(), F(), axis=0)
op("xp_softmax_back", lambda _, g, p, axis: xp.softmax_back(g, p, axis=axis), *PAIRS, NUMBER)
op("xp_log_softmax_back", lambda _, g, q, axis: xp.log_softmax_back(g, q, axis=axis), *PAIRS, NUMBER)
op(
    "xp_reverse_cumsum",
    lambda _, x, axis: xp.reverse_cumsum(x, axis=axis),
    S(F(3), axis=0),
    S(F(2, 3), axis=1),
    complex=True,
)
for _reverse in (False, True):
    op(
        f"xp_recurrence_{_reverse}",
        lambda _, a, b, axis, r=_reverse: xp.recurrence(a, b, axis=axis, reverse=r),
        *PAIRS,
        S(F(2, 3, 2), F(2, 3, 2), axis=1),
        complex=True,
    )
op(
    "xp_recurrence_in_chunks",
    lambda _, a, b: xp.recurrence(a, b, axis=0, reverse=False),
    S(F(66), F(66)),
    domain=((-0.9, -0.3), (0.3, 0.9)),
)
op(
    "xp_prod_back",
    lambda _, g, x, **kw: xp.prod_back(g, x, **kw),
    S(F(), F(3), axis=(0,), keepdims=False),
    S(F(2), F(2, 3), axis=(1,), keepdims=False),
    S(F(2, 1), F(2, 3), axis=(1,), keepdims=True),
    S(F(), F(2, 3), axis=(0, 1), keepdims=False),
    complex=True,
    domain=NOT_ZERO,
)
op(
    "xp_place_along",
    lambda _, g, i, **kw: xp.place_along(g, i, **kw),
    S(F(2), K([2, 0]), axis=0, shape=(3,)),
    S(F(2, 2), K([[0, 2], [2, 1]]), axis=1, shape=(2, 3)),
    S(F(1, 3), K([[1, 0, 1]]), axis=0, shape=(2, 3)),
    complex=True,
)
