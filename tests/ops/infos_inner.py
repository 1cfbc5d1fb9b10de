"""Operations that have no torch name of their own: rules call them, mostly as transposes of public ones."""

from __future__ import annotations

import math
from typing import Any

from retrograd._core.numpy_namespace import ARRAY
from retrograd._core.primitive import vocabulary as xp
from tests.ops.opinfo import BINARY, EVERYWHERE, NOT_ZERO, UNARY, Domain, F, K, Op, S, Sample

OPS: list[Op] = []
EVERY = slice(None)


def op(name: str, call: Any, *samples: Sample, complex: bool = True, domain: Domain = EVERYWHERE) -> None:
    """Add an operation that torch does not have."""
    OPS.append(Op(name, call, samples, complex=complex, domain=domain, oracle_dtypes=()))


op(
    "xp_sum_to",
    lambda _, x, shape: xp.sum_to(x, shape=shape),
    S(F(2, 3), (3,)),
    S(F(2, 3), (2, 1)),
    S(F(2, 3), ()),
    S(F(3), (1,)),
    S(F(2, 3), (2, 3)),
    S(F(2, 3, 2), (1, 2)),
    S(F(0, 3), (1, 3)),
)
op(
    "xp_put_zeros",
    lambda _, g, shape, index: xp.put_zeros(g, shape=shape, index=index),
    S(F(2), (2, 3), (EVERY, 1)),
    S(F(), (3,), (0,)),
    S(F(2, 2), (2, 4), (EVERY, slice(0, 4, 2))),
    S(F(0), (2, 0), (0,)),
)
op(
    "xp_put_diagonal",
    lambda _, g, **kw: xp.put_diagonal(g, **kw),
    S(F(3), shape=(3, 3), offset=0, axis1=0, axis2=1),
    S(F(2), shape=(2, 3), offset=1, axis1=0, axis2=1),
    S(F(2, 1), shape=(2, 3, 2), offset=-2, axis1=1, axis2=2),
    S(F(2, 3), shape=(3, 2, 3), offset=0, axis1=2, axis2=0),
)
op(
    "xp_index_add_zeros",
    lambda _, g, *i, shape, layout: xp.index_add_zeros(g, *i, shape=shape, layout=layout),
    S(F(3), K([0, 2, 2]), shape=(3,), layout=(ARRAY,)),
    S(F(2, 3), K([0, 2, 2]), shape=(2, 3), layout=(EVERY, ARRAY)),
    S(F(2, 3), K([1, 1]), shape=(3, 3), layout=(ARRAY,)),
    S(F(3), K([0, 2, 2]), K([1, 0, 0]), shape=(3, 3), layout=(ARRAY, ARRAY)),
    S(F(2, 3), K([1, 1]), K([0, 2]), shape=(3, 3, 3), layout=(ARRAY, EVERY, ARRAY)),
    S(F(2, 3, 2), K([[1], [1]]), K([0, 2, 0]), shape=(3, 2, 3), layout=(ARRAY, EVERY, ARRAY)),
)
op(
    "xp_scatter_add_zeros",
    lambda _, g, i, axis, shape: xp.scatter_add_zeros(g, i, axis=axis, shape=shape),
    S(F(3), K([0, 2, 2]), 0, (3,)),
    S(F(2, 2), K([[0, 2], [1, 1]]), 1, (2, 3)),
    S(F(), K(0), 0, ()),
    S(F(2, 2), K([[2]]), 1, (2, 3)),
)
op(
    "xp_scatter_add",
    lambda _, x, i, src, axis: xp.scatter_add(x, i, src, axis=axis),
    S(F(3), K([0, 2, 2]), F(3), 0),
    S(F(2, 3), K([[0, 2], [1, 1]]), F(2, 2), 1),
    S(F(), K(0), F(), 0),
    S(F(2, 3), K([[2]]), F(2, 2), 1),
)
op(
    "xp_index_add",
    lambda _, x, src, *i, **kw: xp.index_add(x, src, *i, **kw),
    S(F(3), F(3), K([0, 2, 2]), layout=(ARRAY,), alpha=1),
    S(F(2, 3), F(2, 3), K([0, 2, 2]), layout=(EVERY, ARRAY), alpha=0.7),
)
op("xp_real", lambda _, x: xp.real(x), S(F(2, 3)), S(F()), complex=True)
op("xp_imag", lambda _, x: xp.imag(x * 1j), S(F(2, 3)), S(F()), complex=True)
op(
    "xp_clip_both",
    lambda _, x, y, z: xp.clip_both(x, y, z),
    S(F(2, 3), F(3), F(2, 1)),
    S(F(), F(), F()),
    complex=False,
)
op("xp_divide_floor", lambda _, x, y: xp.divide_floor(x, y), *BINARY, complex=False, domain=NOT_ZERO)
op("xp_divide_trunc", lambda _, x, y: xp.divide_trunc(x, y), *BINARY, complex=False, domain=NOT_ZERO)
THREE = (S(F(2, 3), F(3), F(2, 1)), S(F(), F(), F()), S(F(3), F(3), F(3)), S(F(0), F(0), F(1)))
op("xp_lerp", lambda _, x, y, z: xp.lerp(x, y, z), *THREE)
op("xp_addcmul", lambda _, x, y, z: xp.addcmul(x, y, z, value=0.7), *THREE)
op("xp_addcdiv", lambda _, x, y, z: xp.addcdiv(x, y, z, value=0.7), *THREE, domain=NOT_ZERO)
AXES = tuple(
    S(F(*shape), axis=axis, keepdims=keep)
    for shape, axis, keep in (
        ((3,), (0,), False),
        ((2, 3), (1,), True),
        ((2, 3), (0, 1), False),
        ((2, 3, 2), (0, 2), False),
    )
)
for p in (0, 1, 2, math.inf, -math.inf, 3, 2.5, 1.5, 0.5, -1):
    op(f"xp_norm_{p}", lambda _, x, p=p, **kw: xp.norm(x, p=p, **kw), *AXES, domain=NOT_ZERO)
for correction in (0, 1, 0.5):
    for name in ("var", "std"):
        op(
            f"xp_{name}_{correction}",
            lambda _, x, n=name, c=correction, **kw: getattr(xp, n)(x, correction=c, **kw),
            *AXES,
        )
op("xp_softplus", lambda _, x: xp.softplus(x), *UNARY, complex=False)
op("xp_log_sigmoid", lambda _, x: xp.log_sigmoid(x), *UNARY, complex=False)
op("xp_square", lambda _, x: xp.square(x), *UNARY)
op("xp_alias", lambda _, x: xp.alias(x), *UNARY)
op("xp_tanh_back", lambda _, g, out: xp.tanh_back(g, out), *BINARY)
op("xp_sigmoid_back", lambda _, g, out: xp.sigmoid_back(g, out), *BINARY)
op("xp_matmul_nt", lambda _, x, y: xp.matmul_nt(x, y), S(F(2, 3), F(4, 3)), S(F(2, 3), F(1, 3)), S(F(0, 3), F(2, 3)))
op("xp_matmul_tn", lambda _, x, y: xp.matmul_tn(x, y), S(F(3, 2), F(3, 4)), S(F(3, 1), F(3, 2)), S(F(3, 0), F(3, 2)))
