"""Indexing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.opinfo import F, K, Op, S, Sample

OPS: list[Op] = []


def op(name: str, call: Any, *samples: Sample, **options: Any) -> None:
    """Add an operation; indices do not care for complex numbers."""
    OPS.append(Op(name, call, samples, **{"complex": True, **options}))


class At:
    """Read an index expression as `At()[1:, None]`."""

    def __getitem__(self, index: Any) -> Any:
        return index if isinstance(index, tuple) else (index,)


at = At()
ROWS = K([0, 2, 2])
op(
    "getitem",
    lambda torch, x, index: x[index],
    S(F(3), at[0]),
    S(F(3), at[-1]),
    S(F(2, 3), at[0]),
    S(F(2, 3), at[:, 1]),
    S(F(2, 3), at[1:, ::2]),
    S(F(2, 3), at[..., -1]),
    S(F(2, 3), at[None, :, None]),
    S(F(2, 3, 2), at[0, ..., 1]),
    S(F(), at[...]),
    S(F(), at[None]),
    S(F(2, 3), at[2:]),
    S(F(2, 3, layout="transposed"), at[1, :2]),
    S(F(2, 3), at[:]),
    S(F(0, 3), at[:, 0]),
)

op("getitem_two_ellipses", lambda torch, x: x[..., ...], S(F(2, 3)), S(F()))

INDEX = {
    "index_first": lambda torch, x, i: x[i],
    "index_second": lambda torch, x, i: x[:, i],
    "index_last": lambda torch, x, i: x[..., i],
    "index_behind_new": lambda torch, x, i: x[None, i],
    "index_behind_int": lambda torch, x, i: x[0, i],
    "index_before_int": lambda torch, x, i: x[i, 0],
    "index_beside_slice": lambda torch, x, i: x[i, 1:],
}
for _name, _call in INDEX.items():
    op(
        _name,
        _call,
        S(F(3, 3, 3), ROWS),
        S(F(3, 3), K([[0, -1], [1, 1]])),
        S(F(3, 3), K(np.zeros(0, int))),
        S(F(3, 3, layout="transposed"), K([2])),
    )
op(
    "index_one",
    lambda torch, x, i: x[i],
    S(F(3), ROWS),
    S(F(3), K([[0, -1], [1, 1]])),
    S(F(4, layout="strided"), K([3, 0])),
)
PAIRS = {
    "index_pair": lambda torch, x, i, j: x[i, j],
    "index_pair_apart": lambda torch, x, i, j: x[i, :, j],
    "index_pair_behind": lambda torch, x, i, j: x[:, i, j],
    "index_pair_around_int": lambda torch, x, i, j: x[i, 1, j],
    "index_pair_around_new": lambda torch, x, i, j: x[i, None, j],
}
for _name, _call in PAIRS.items():
    op(
        _name,
        _call,
        S(F(3, 3, 3), ROWS, K([1, 1, 0])),
        S(F(3, 3, 3), K([[0], [1]]), K([1, 1, 0])),
        S(F(3, 3, 3, 2), ROWS, K([1])),
    )
op("index_list", lambda torch, x: x[[0, 2, 0]], S(F(3)), S(F(3, 2)))
op(
    "index_mask",
    lambda torch, x, m: x[m],
    S(F(3), K([True, False, True])),
    S(F(2, 3), K([[True, False, True], [False, False, True]])),
    S(F(2, 3), K([True, False])),
    S(F(3), K([False] * 3)),
    batching=False,
)
op("index_mask_second", lambda torch, x, m: x[:, m], S(F(2, 3), K([True, False, True])), batching=False)
op("index_true", lambda torch, x: x[True], S(F(3)), S(F()))
op(
    "masked_select",
    lambda torch, x, m: torch.masked_select(x, m),
    S(F(3), K([True, False, True])),
    S(F(2, 3), K([True, False, True])),
    S(F(3), K([[True], [False]])),
    batching=False,
)

GATHER = (
    S(F(3), 0, ROWS),
    S(F(2, 3), 1, K([[0, 2], [1, 1]])),
    S(F(2, 3), 0, K([[0, 1, 1]])),
    S(F(2, 3), -1, K([[2]])),
    S(F(2, 3, 2), 1, K([[[0, 2]], [[1, 1]]])),
    S(F(), 0, K(0)),
    S(F(3), 0, K(np.zeros(0, int))),
    S(F(3), 0, K(1)),
    S(F(), 0, K([0, 0])),
)
op("gather", lambda torch, x, d, i: torch.gather(x, d, i), *GATHER)
op(
    "take_along_dim",
    lambda torch, x, i, d: torch.take_along_dim(x, i, d),
    S(F(2, 3), K([[0, 2], [1, 1]]), 1),
    S(F(2, 3), K([[0, 1, 1]]), 0),
    S(F(2, 3), K([[2], [0]]), -1),
    S(F(2, 3), K([5, 0, 5]), None),
)
op(
    "take_along_dim_broadcast",
    lambda torch, x, i, d: torch.take_along_dim(x, i, d),
    S(F(2, 3), K([[2, 1]]), 1),
    S(F(1, 3), K([[0], [2]]), 1),
)
op(
    "index_select",
    lambda torch, x, d, i: torch.index_select(x, d, i),
    S(F(3), 0, ROWS),
    S(F(2, 3), 1, ROWS),
    S(F(2, 3), 0, K([1])),
    S(F(2, 3), -1, K(np.zeros(0, int))),
    S(F(), 0, K([0])),
    S(F(3), 0, K(1)),
)
# scatter into distinct places: with repeated indices torch leaves the order open
op(
    "scatter",
    lambda torch, x, d, i, src: torch.scatter(x, d, i, src),
    S(F(3), 0, K([2, 0]), F(2)),
    S(F(2, 3), 1, K([[0, 2], [1, 0]]), F(2, 2)),
    S(F(2, 3), 0, K([[0, 1, 1]]), F(1, 3)),
    S(F(2, 3), 1, K([[0, 2], [1, 0]]), 1.5),
)
# a source larger than the index: torch's backward refuses it, ours gives zeros where nothing was read
op(
    "scatter_of_larger",
    lambda torch, x, d, i, src: torch.scatter(x, d, i, src),
    S(F(2, 3), 0, K([[0, 1, 1]]), F(2, 3)),
    S(F(2, 3), -1, K([[2]]), F(1, 2)),
    S(F(3), 0, K(1), F(3)),
    oracle_dtypes=(),
)
op(
    "scatter_add_of_larger",
    lambda torch, x, d, i, src: torch.scatter_add(x, d, i, src),
    S(F(2, 3), 0, K([[0, 1, 1]]), F(2, 3)),
    S(F(2, 3), -1, K([[2, 2]]), F(2, 2)),
    S(F(3), 0, K(1), F(3)),
    oracle_dtypes=(),
)
op(
    "scatter_value",
    lambda torch, x, d, i: torch.scatter(x, d, i, value=2.5),
    S(F(3), 0, K([2, 0])),
    S(F(2, 3), 1, K([[0], [2]])),
)
op(
    "scatter_add",
    lambda torch, x, d, i, src: torch.scatter_add(x, d, i, src),
    S(F(3), 0, K([2, 0, 2]), F(3)),
    S(F(2, 3), 1, K([[0, 2], [1, 1]]), F(2, 2)),
    S(F(2, 3), 0, K([[0, 1, 1]]), F(1, 3)),
    S(F(2, 3), -1, K([[2, 2]]), F(1, 2)),
)
op(
    "scatter_without_dimensions",
    lambda torch, x, d, i, src: torch.scatter(x, d, i, src),
    S(F(3), 0, K([1]), F()),
    S(F(), 0, K([0]), F()),
    same_graph=False,
)
op(
    "scatter_add_without_dimensions",
    lambda torch, x, d, i, src: torch.scatter_add(x, d, i, src),
    S(F(3), 0, K([1]), F()),
    S(F(), 0, K([0]), F()),
    same_graph=False,
)
op("scatter_", lambda torch, x, d, i, src: x.clone().scatter_(d, i, src), S(F(3), 0, K([2, 0]), F(2)))
op(
    "scatter_add_",
    lambda torch, x, d, i, src: x.clone().scatter_add_(d, i, src),
    S(F(3), 0, K([2, 0, 2]), F(3)),
)
op(
    "index_add",
    lambda torch, x, d, i, src, **kw: torch.index_add(x, d, i, src, **kw),
    S(F(3), 0, ROWS, F(3)),
    S(F(2, 3), 1, K([0, 0]), F(2, 2)),
    S(F(2, 3), 0, K([1, 1, 0]), F(3, 3), alpha=2),
    S(F(2, 3), -1, K([2]), F(2, 1)),
)
op("index_add_", lambda torch, x, d, i, src: x.clone().index_add_(d, i, src), S(F(3), 0, ROWS, F(3)))
PUT = (
    S(F(3), [K([2, 0])], F(2)),
    S(F(2, 3), [K([1])], F(3)),
    S(F(2, 3), [K([0, 1]), K([2, 0])], F(2)),
    S(F(2, 3), [K([0, 1]), K([2, 0])], F()),
    S(F(3, 2, 3), [K([[0], [2]]), K([1])], F(3)),
)
op("index_put", lambda torch, x, i, v: torch.index_put(x, tuple(i), v), *PUT)
op(
    "index_put_accumulate",
    lambda torch, x, i, v: torch.index_put(x, tuple(i), v, accumulate=True),
    *PUT,
    S(F(3), [K([2, 2])], F(2)),
)
op("index_put_", lambda torch, x, i, v: x.clone().index_put_(tuple(i), v), *PUT)
MASK = K([[True, False, True], [False, False, True]])
op(
    "masked_fill",
    lambda torch, x, m, v: torch.masked_fill(x, m, v),
    S(F(2, 3), MASK, 1.5),
    S(F(2, 3), MASK, F()),
    S(F(2, 3), K([True, False, True]), 0),
    S(F(), K(True), 2.0),
    S(F(3), MASK, 2.0),
)
op(
    "masked_fill_",
    lambda torch, x, m, v: x.clone().masked_fill_(m, v),
    S(F(2, 3), MASK, 1.5),
    S(F(2, 3), MASK, F()),
)


def _write(x: Any, index: Any, value: Any) -> Any:
    y = x.clone()
    y[index] = value
    return y


op(
    "setitem",
    lambda torch, x, index, v: _write(x, index, v),
    S(F(3), at[0], F()),
    S(F(2, 3), at[0], F(3)),
    S(F(2, 3), at[:, 1:], F(2)),
    S(F(2, 3), at[..., 0], 1.5),
    S(F(2, 3), at[:], F(1, 2, 3)),
    S(F(), at[...], F()),
    S(F(2, 3), at[None, 1], F(3)),
)
op(
    "setitem_rows",
    lambda torch, x, i, v: _write(x, i, v),
    S(F(3), K([2, 0]), F(2)),
    S(F(3, 2), K([2, 0]), F(2, 2)),
    S(F(3, 2), K([2, 0]), F(2)),
)
op(
    "setitem_columns",
    lambda torch, x, i, v: _write(x, (slice(None), i), v),
    S(F(2, 3), K([2, 0]), F(2, 2)),
    S(F(2, 3), K([2, 0]), F()),
)
op(
    "setitem_pair",
    lambda torch, x, i, j, v: _write(x, (i, slice(None), j), v),
    S(F(3, 2, 3), K([2, 0]), K([1, 0]), F(2, 2)),
)
op(
    "setitem_mask",
    lambda torch, x, m, v: _write(x, m, v),
    S(F(2, 3), MASK, F(3)),
    S(F(2, 3), MASK, 1.5),
    S(F(2, 3), MASK, F()),
    batching=False,
)

# ---- no derivative ----
op(
    "nonzero",
    lambda torch, x: torch.nonzero(x),
    S(F(3)),
    S(F(2, 3)),
    S(F()),
    differentiable=False,
    batching=False,
)
op(
    "nonzero_as_tuple",
    lambda torch, x: torch.nonzero(x, as_tuple=True),
    S(F(3)),
    S(F(2, 3)),
    S(F()),
    differentiable=False,
    batching=False,
)
