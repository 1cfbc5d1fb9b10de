"""Rearranging: flips, shifts, repeats, pads, diagonals, stacks, sections, copies of views and writes into parts."""

from __future__ import annotations

from typing import Any

from retrograd._core.primitive import vocabulary as xp
from tests.ops.opinfo import UNARY, F, K, Op, S, Sample

OPS: list[Op] = []
T = "transposed"


def op(name: str, call: Any, *samples: Sample, **options: Any) -> None:
    """Add an operation; what moves values does not care for complex numbers."""
    OPS.append(Op(name, call, samples, **{"complex": True, **options}))


def named(name: str, *samples: Sample, **options: Any) -> None:
    """Add a function of the package."""
    op(name, lambda torch, *args, **kw: getattr(torch, name)(*args, **kw), *samples, **options)


def method(name: str, *samples: Sample, **options: Any) -> None:
    """Add a method."""
    op(name, lambda torch, x, *args, **kw: getattr(x, name)(*args, **kw), *samples, **options)


# ---- order ----
named("fliplr", S(F(2, 3)), S(F(2, 3, 2)))
named("flipud", S(F(3)), S(F(2, 3)))
named("rot90", *[S(F(2, 3), k) for k in range(-1, 5)], S(F(2, 3, 2), 1, (2, 0)), S(F(2, 3, layout=T), 3, (0, -1)))
named(
    "roll",
    S(F(3), 1),
    S(F(3), -4),
    S(F(2, 3), 2),
    S(F(2, 3), 1, 1),
    S(F(2, 3), (1, 2), (0, -1)),
    S(F(2, 3), (1, 1), (1, 1)),
    S(F(), 1),
    S(F(0, 2), 1),
    S(F(2, 3, layout=T), 1, 0),
    S(F(2, 3), 0, 0),
)
method("repeat", S(F(3), 2), S(F(2, 3), 1, 2), S(F(2, 1), 2, 1, 3), S(F(), 2), S(F(3), 0), S(F(2, 3, layout=T), 2, 2))
named("tile", S(F(2, 3), (2,)), S(F(3), (2, 2)), S(F(2, 3), ()), S(F(), (2,)), S(F(2, 3), dims=(1, 2)))
named(
    "repeat_interleave",
    S(F(3), 2),
    S(F(2, 3), 2, 1),
    S(F(2, 3), 3),
    S(F(2, 3), K([1, 2]), 0),
    S(F(3), K([0, 2, 1])),
    S(F(3), K([2])),
    S(F(), 2),
    S(F(2, 3), 0, 1),
    batching=False,
)
named(
    "constant_pad_nd",
    S(F(3), (1, 2)),
    S(F(2, 3), (1, 0, 0, 2), 1.5),
    S(F(2, 3), (-1, 1)),
    S(F(2, 3), (-1, -1, 1, 1), 2.0),
    S(F(2, 0), (1, 1)),
    S(F(), ()),
)

# ---- diagonals ----
named("diag", S(F(3)), S(F(2), 1), S(F(2), -1), S(F(2, 3)), S(F(3, 2), -1), S(F(2, 3), 5))
named("diag_embed", S(F(3)), S(F(2, 3), 1), S(F(2, 3), -1, 0, 2), S(F(2, 2), 0, 1, 0), S(F(2, 0)))
named("diagflat", S(F(3)), S(F(2, 2), 1), S(F(), -1))
named("block_diag", S(F(2, 3), F(1, 2)), S(F(), F(3), F(2, 2)), S(F(2, 0), F(2)))

# ---- stacks ----
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    named(_name, S(F()), S(F(3)), S(F(2, 3)), S(F(2, 3, 2)), S(F(), F(3)), S([F(2, 3), F()]))
for _name in ("hstack", "vstack", "row_stack", "dstack", "column_stack"):
    named(_name, S([F(3), F(3)]), S([F(2, 3), F(2, 3)]), S((F(), F())))
named("cartesian_prod", S(F(2), F(3)), S(F(3)), S(F(2), F(1), F(2)))
named("combinations", S(F(4)), S(F(3), 3), S(F(3), 2, True), S(F(3), 1), S(F(1), 2))
named("broadcast_tensors", S(F(3), F(2, 1)), S(F(), F(2, 3), F(1)), S(F(2, 3)))
method("sum_to_size", S(F(2, 3), 3), S(F(2, 3), 2, 1), S(F(2, 3), 2, 3), S(F(2, 3), 1), S(F(2, 3), (1, 1)))

# ---- sections ----
named("split_with_sizes", S(F(5), [1, 4]), S(F(2, 3), [1, 0, 2], -1))
named("unsafe_split", S(F(5), 2), S(F(2, 5), 2, 1))
named("unsafe_split_with_sizes", S(F(5), [2, 3]))
named("unsafe_chunk", S(F(5), 2), S(F(2, 5), 3, 1))
named(
    "tensor_split",
    S(F(5), 2),
    S(F(2, 5), 3, 1),
    S(F(5), (1, 3)),
    S(F(5), (3, 1)),
    S(F(5), (-1, 7)),
    S(F(2), 3),
)
named("hsplit", S(F(4), 2), S(F(2, 4), 2), S(F(2, 4), (1, 3)))
named("vsplit", S(F(4, 2), 2), S(F(4, 2), (1,)))
named("dsplit", S(F(2, 2, 4), 2), S(F(2, 2, 4), (1, 3)))
method("unflatten", S(F(2, 6), 1, (2, 3)), S(F(6), 0, (-1, 2)), S(F(2, 6), -1, (3, -1, 1)))

# ---- any strides ----
STRIDES = (
    S(F(6), (2, 2), (1, 2)),
    S(F(2, 3), (2, 2), (3, 1)),
    S(F(6), (3, 3), (1, 1)),
    S(F(6), (2, 3), (0, 2)),
    S(F(6), (), ()),
    S(F(6), (0, 2), (2, 1)),
)
named("as_strided", *STRIDES)
named("as_strided_copy", *STRIDES)
# an offset is one of the whole storage, of which a row in a loop is a part: vmap gives something else
op(
    "as_strided_at",
    lambda torch, x, *at: x.as_strided(*at),
    S(F(6), (2, 2), (1, 1), 1),
    S(F(6), (), (), 3),
    batching=False,
)
op(
    "as_strided_twice",
    lambda torch, x: x.as_strided((4,), (1,), 1).as_strided((2, 2), (1, 1), 2),
    S(F(6)),
    batching=False,
)
op("as_strided_squared", lambda torch, x: x.as_strided((3, 2), (1, 1)) ** 2, S(F(6)), S(F(2, 3)))
op("as_strided_", lambda torch, x: x.clone().as_strided_((2, 2), (1, 2)), S(F(6)))
op(
    "xp_restride",  # to a shape with gaps, as no view has: torch has no name for it
    lambda _, x, **places: xp.restride(x, **places),
    S(F(2, 2), in_stride=(3, 1), start=1, size=(3, 2), stride=(2, 1), offset=0, length=7),
    S(F(3), in_stride=(1,), start=0, size=(2, 2), stride=(1, 1), offset=0, length=3),
    oracle_dtypes=(),
)
op(
    "xp_restride_add",
    lambda _, g, **places: xp.restride_add(g, **places),
    S(F(3, 2), shape=(2, 2), in_stride=(3, 1), start=1, stride=(2, 1), offset=0, length=7),
    S(F(2, 2), shape=(3,), in_stride=(1,), start=0, stride=(1, 1), offset=0, length=3),
    oracle_dtypes=(),
)
op(
    "xp_unfold_add",
    lambda _, g, **windows: xp.unfold_add(g, **windows),
    S(F(4, 2), shape=(5,), axis=0, size=2, step=1),
    S(F(2, 2, 3), shape=(2, 5), axis=1, size=3, step=2),
    S(F(1), shape=(), axis=0, size=1, step=1),
    oracle_dtypes=(),
)
method("unfold", S(F(5), 0, 2, 1), S(F(2, 5), 1, 3, 2), S(F(4, 2), 0, 4, 1), S(F(), 0, 1, 1), S(F(5), 0, 0, 1))
op("unfold_squared", lambda torch, x: x.unfold(0, 3, 1) ** 2, S(F(5)), S(F(3)))
op("write_into_as_strided", lambda torch, x, y: _into_strided(x, y), S(F(6), F(3)))
op("write_into_unfolded", lambda torch, x, y: _into_unfolded(x, y), S(F(6), F(3, 2)))

# ---- copies of views ----
named("alias_copy", *UNARY)
named("diagonal_copy", S(F(2, 3)), S(F(3, 3), 1))
named("expand_copy", S(F(3), (2, 3)))
named("narrow_copy", S(F(4), 0, 1, 2))
named("permute_copy", S(F(2, 3, 2), (2, 0, 1)))
named("select_copy", S(F(2, 3), 1, -1))
named("slice_copy", S(F(5), 0, 1, 4, 2), S(F(2, 5), 1, -2), S(F(3)))
named("split_copy", S(F(5), 2))
named("split_with_sizes_copy", S(F(5), [2, 3]))
named("squeeze_copy", S(F(1, 3, 1)), S(F(1, 3, 1), 0), S(F(1, 3, 1), (0, 2)))
named("t_copy", S(F(2, 3)))
named("transpose_copy", S(F(2, 3), 0, 1))
named("unbind_copy", S(F(2, 3), 1))
named("unfold_copy", S(F(5), 0, 2, 1))
named("unsqueeze_copy", S(F(3), 0))
named("view_copy", S(F(2, 3), (3, 2)))
op(
    "view_as_real_copy",
    lambda torch, x: torch.view_as_real_copy(x * (1 + 2j)),
    S(F(2, 3)),
    oracle_dtypes=("complex128",),
)

# ---- writes into a part of a copy ----
named("select_scatter", S(F(2, 3), F(3), 0, 1), S(F(2, 3), F(2), -1, -1))
named("slice_scatter", S(F(4), F(2), 0, 1, 3), S(F(2, 5), F(2, 2), 1, 0, 4, 2), S(F(3), F(3)))
named("diagonal_scatter", S(F(3, 3), F(3)), S(F(2, 3), F(2), 1), S(F(2, 3, 3), F(2, 2), -1, 1, 2))
# torch's own gradient of the first argument is that of the places it overwrites: its forward mode says otherwise
named("as_strided_scatter", S(F(6), F(3), (3,), (2,)), S(F(2, 3), F(2, 2), (2, 2), (3, 1)), oracle_dtypes=())
op("adjoint", lambda torch, x: x.adjoint(), S(F(2, 3)), S(F(2, 3, 2)))


def _into_strided(x: Any, y: Any) -> Any:
    z = x + y.sum()
    z.as_strided((3,), (2,)).mul_(y)
    return z * z


def _into_unfolded(x: Any, y: Any) -> Any:
    z = x + y.sum()
    z.unfold(0, 2, 2).mul_(y)
    return z * z
