"""Scatters with reductions, slices written along a dimension, and positions of the flattened tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.opinfo import F, K, Op, S, Sample

OPS: list[Op] = []


def op(name: str, call: Any, *samples: Sample, **options: Any) -> None:
    """Add an operation; indices do not care for complex numbers."""
    OPS.append(Op(name, call, samples, **{"complex": True, **options}))


REDUCED = (
    S(F(3), 0, K([2, 0, 2]), F(3)),
    S(F(2, 3), 1, K([[0, 2], [1, 1]]), F(2, 2)),
    S(F(2, 3), 0, K([[0, 1, 1], [1, 1, 1]]), F(2, 3)),
    S(F(2, 3, layout="transposed"), -1, K([[2, 2]]), F(1, 2)),
    S(F(), 0, K(0), F()),
    S(F(3), 0, K(np.zeros(0, int)), F(0)),
)
for _reduce in ("sum", "mean", "prod", "amax", "amin"):
    for _self in (True, False):
        op(
            f"scatter_reduce_{_reduce}{'' if _self else '_alone'}",
            lambda torch, x, d, i, src, _r=_reduce, _s=_self: torch.scatter_reduce(x, d, i, src, _r, include_self=_s),
            *REDUCED,
            complex=_reduce in ("sum", "mean"),
        )
SLICES = (
    S(F(3), 0, K([2, 0]), F(2)),
    S(F(2, 3), 1, K([0, 0]), F(2, 2)),
    S(F(2, 3), 0, K([1, 1, 0]), F(3, 3)),
    S(F(2, 3, 2), -2, K([2]), F(2, 1, 2)),
    S(F(), 0, K([0]), F()),
)
for _reduce in ("mean", "prod", "amax", "amin"):
    for _self in (True, False):
        op(
            f"index_reduce_{_reduce}{'' if _self else '_alone'}",
            lambda torch, x, d, i, src, _r=_reduce, _s=_self: torch.index_reduce(x, d, i, src, _r, include_self=_s),
            *SLICES,
            complex=False,
        )
# distinct places: with repeated ones the last write wins, and torch leaves the order open
op(
    "index_copy",
    lambda torch, x, d, i, src: torch.index_copy(x, d, i, src),
    S(F(3), 0, K([2, 0]), F(2)),
    S(F(2, 3), 1, K([0, 2]), F(2, 2)),
    S(F(2, 3, 2), -2, K([2]), F(2, 1, 2)),
    S(F(3), 0, K(1), F()),
    S(F(), 0, K([0]), F()),
)
op("index_copy_", lambda torch, x, d, i, src: x.clone().index_copy_(d, i, src), S(F(3), 0, K([2, 0]), F(2)))
op(
    "index_fill",
    lambda torch, x, d, i, v: torch.index_fill(x, d, i, v),
    S(F(3), 0, K([2, 0]), 1.5),
    S(F(2, 3), 1, K([0, -1, 0]), F()),
    S(F(2, 3, 2), 0, K(1), F()),
    S(F(), 0, K([0]), 2.0),
)
op("index_fill_", lambda torch, x, d, i, v: x.clone().index_fill_(d, i, v), S(F(3), 0, K([2, 0]), 1.5))
op("index_add_scalar", lambda torch, x, d, i, src: torch.index_add(x, d, i, src), S(F(), 0, K([0]), F()))
op(
    "index_add_rows",  # long rows take a way of their own
    lambda torch, x, d, i, src: torch.index_add(x, d, i, src),
    S(F(3, 130), 0, K([2, 0, 2]), F(3, 130)),
)
op(
    "take",
    lambda torch, x, i: torch.take(x, i),
    S(F(3), K([2, 0, 2])),
    S(F(2, 3), K([[5, -6], [0, 0]])),
    S(F(2, 3, layout="transposed"), K(4)),
    S(F(), K([[0]])),
    S(F(3), K(np.zeros(0, int))),
)
PUT = (
    S(F(3), K([2, 0]), F(2)),
    S(F(2, 3), K([[5, -6], [1, 2]]), F(2, 2)),
    S(F(2, 3, layout="transposed"), K([4]), F(1)),
    S(F(), K(0), F()),
)
op("put", lambda torch, x, i, v: x.put(i, v), *PUT)
op("put_accumulate", lambda torch, x, i, v: x.put(i, v, accumulate=True), *PUT, S(F(3), K([1, 1]), F(2)))
op("put_", lambda torch, x, i, v: x.clone().put_(i, v), S(F(3), K([2, 0]), F(2)))
MASK = K([[True, False, True], [False, False, True]])
op(
    "masked_scatter",
    lambda torch, x, m, v: torch.masked_scatter(x, m, v),
    S(F(2, 3), MASK, F(6)),
    S(F(2, 3), MASK, F(3, 2)),
    S(F(2, 3), K([True, False, True]), F(4)),
    S(F(3), MASK, F(4)),
    S(F(), K(True), F(1)),
)
op("masked_scatter_", lambda torch, x, m, v: x.clone().masked_scatter_(m, v), S(F(2, 3), MASK, F(6)))
