"""LDL decomposition of symmetric and Hermitian matrices, by LAPACK. torch has no derivatives of it."""

from __future__ import annotations

from .._core import lapack
from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import behind, general, vocabulary


def _without_derivative(primitive, name):
    """Give a primitive torch's refusals in place of rules."""

    @primitive.vjp(*primitive.inputs)
    def refuse_backward(xp, g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    @primitive.jvp
    def refuse_forward(xp, t):
        raise NotImplementedError(f"Trying to use forward AD with aten::{name} that does not support it.")


@general(outputs=3, batch=behind)
def ldl_factor(xp, x, *, hermitian):
    """Return L and D in one matrix, LAPACK's exchanges, and where D's diagonal is zero, or 0."""
    lead = x.shape[:-2]
    if not x.size:
        return x.copy(), xp.module.zeros(x.shape[:-1], "int32"), xp.module.zeros(lead, "int32")
    (factorize,) = lapack.functions(x.dtype, "hetrf" if hermitian and x.dtype.kind == "c" else "sytrf")
    memory = lapack.BLOCK * x.shape[-1]

    def run(a):
        packed, exchanges, zero = factorize(a, lower=1, lwork=memory)
        return lapack.lower_triangle(numpy_namespace, packed, 0), exchanges, lapack.info(zero)

    return lapack.one_by_one(xp, run, x, ranks=(2,))


_without_derivative(ldl_factor, "linalg_ldl_factor_ex")


@general
def ldl_solve(xp, packed, pivots, b, *, hermitian):
    """Solve a @ x = b for what `ldl_factor` packed."""
    lead = lapack.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    if not b.size or not packed.size or 0 in lead:
        return xp.module.zeros((*lead, *b.shape[-2:]), b.dtype)
    (solve,) = lapack.functions(b.dtype, "hetrs" if hermitian and b.dtype.kind == "c" else "sytrs")
    packed, pivots, b = (
        xp.module.broadcast_to(a, (*lead, *a.shape[a.ndim - rank :]))
        for a, rank in ((packed, 2), (pivots.astype("int32"), 1), (b, 2))
    )
    return lapack.one_by_one(xp, lambda a, p, c: solve(a, p, c, lower=1)[:1], packed, pivots, b, ranks=(2, 1, 2))[0]


_without_derivative(ldl_solve, "linalg_ldl_solve")


@ldl_solve.batch
def ldl_solve_batch(call, args, batched, size, *, hermitian):
    rank = max(a.ndim - mine + extra for a, mine, extra in zip(args, batched, (0, 1, 0), strict=True))
    lined = []
    for a, mine, extra in zip(args, batched, (0, 1, 0), strict=True):
        missing = rank - (a.ndim - mine + extra)
        lined.append(vocabulary.reshape(a, shape=(size, *(1,) * missing, *a.shape[1:])) if mine and missing else a)
    return call(*lined, hermitian=hermitian)
