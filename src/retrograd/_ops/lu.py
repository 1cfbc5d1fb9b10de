"""LU decomposition with exchange of rows: a = P @ L @ U; and LDL decomposition of symmetric and Hermitian matrices."""

from __future__ import annotations

import math
from functools import partial

from .._core import lapack
from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import align_ranks, behind, general, unmoved, vocabulary
from . import solving  # noqa: F401 - the rules solve with triangles
from .matrices import adjoint, columns, identity_like, rows, transposed

FEW, SMALL = 8, 16  # matrices and columns: elimination for all matrices at once beats a loop over LAPACK calls
UNIT = {"upper": False, "unitriangular": True}
UPPER = {"upper": True, "unitriangular": False}


# ---- pivots ----
def _order(pivots, length):
    """Return where each row comes from."""
    order = list(range(length))
    for i, other in enumerate(pivots):
        order[i], order[other - 1] = order[other - 1], order[i]
    return order


@general(differentiable=False, batch=unmoved)
def permutation(xp, pivots, *, length, dtype):
    """Return P, as a matrix, from LAPACK's exchanges: row i with row pivots[i], one after the other, counted from 1."""
    if pivots.ndim == 1:
        out = xp.module.zeros((length, length), getattr(dtype, "numpy", dtype))
        out[_order(pivots.tolist(), length), xp.module.arange(length)] = 1
        return out
    lead, count = pivots.shape[:-1], pivots.shape[-1]
    flat = pivots.reshape(math.prod(lead), count).astype("int64") - 1
    order = xp.module.tile(xp.module.arange(length), (flat.shape[0], 1))
    every = xp.module.arange(flat.shape[0])
    for i in range(count):
        other = flat[:, i]
        order[:, i], order[every, other] = order[every, other], order[:, i].copy()
    out = xp.module.zeros((flat.shape[0], length, length), getattr(dtype, "numpy", dtype))
    out[every[:, None], order, xp.module.arange(length)] = 1
    return out.reshape(*lead, length, length)


# ---- the factors in one matrix ----
def _factorized(factorize, a):
    packed, exchanges, zero = factorize(a)
    return packed, exchanges + lapack.info(1), lapack.info(zero)


@general(torch="linalg_lu_factor_ex", outputs=3, batch=behind)
def lu_factor(xp, x):
    """Return L below the diagonal and U in one matrix, the exchanges of rows, and where U's diagonal is zero, or 0."""
    lead, (m, n) = x.shape[:-2], x.shape[-2:]
    if not x.size:
        pivots = xp.module.tile(xp.module.arange(1, 1 + min(m, n), dtype="int32"), (*lead, 1))
        return x.copy(), pivots, xp.module.zeros(lead, "int32")
    if math.prod(lead) > FEW and min(m, n) <= SMALL:
        return _eliminated(xp, x)
    (factorize,) = lapack.functions(x.dtype, "getrf")
    if not lead and lapack.on_cpu(xp):
        return _factorized(factorize, x)
    return lapack.one_by_one(xp, partial(_factorized, factorize), x, ranks=(2,))


def _eliminated(xp, x):
    """Factor all matrices of a batch column by column, choosing rows as LAPACK does."""
    module, lead, (m, n) = xp.module, x.shape[:-2], x.shape[-2:]
    count, k = math.prod(lead), min(m, n)
    a = x.reshape(count, m, n).copy()
    every = module.arange(count)
    pivots, info = module.empty((count, k), "int32"), module.zeros(count, "int32")
    for j in range(k):
        column = a[:, j:, j]
        sizes = module.abs(column) if a.dtype.kind != "c" else module.abs(column.real) + module.abs(column.imag)
        at = sizes.argmax(1) + j
        pivots[:, j] = at + 1
        chosen = a[every, at]
        a[every, at] = a[:, j]
        a[:, j] = chosen
        zero = chosen[:, j] == 0
        info[zero & (info == 0)] = j + 1
        below = a[:, j + 1 :, j] / module.where(zero, 1, chosen[:, j])[:, None]
        a[:, j + 1 :, j] = below
        a[:, j + 1 :, j + 1 :] -= below[:, :, None] * chosen[:, None, j + 1 :]
    return a.reshape(x.shape), pivots.reshape(*lead, k), info.reshape(lead)


def _split(xp, packed):
    """Take L and U out of one matrix."""
    k = min(packed.shape[-2:])
    low = columns(xp, packed, 0, k) if packed.shape[-1] > k else packed
    low = xp.triangle(low, upper=False, k=-1) + identity_like(xp, low)
    high = rows(xp, packed, 0, k) if packed.shape[-2] > k else packed
    return low, xp.triangle(high, upper=True, k=0)


def _joined(xp, low, high, shape):
    """Put what belongs to L and to U into one matrix; either may be None."""
    m, n = shape[-2:]
    rank = len(shape)
    lead = (slice(None),) * (rank - 2)
    parts = []
    if low is not None:
        low = xp.triangle(low, upper=False, k=-1)
        parts.append(low if n <= m else xp.put_zeros(low, shape=shape, index=(*lead, slice(None), slice(0, m))))
    if high is not None:
        high = xp.triangle(high, upper=True, k=0)
        parts.append(high if m <= n else xp.put_zeros(high, shape=shape, index=(*lead, slice(0, n), slice(None))))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@lu_factor.vjp("x")
def lu_factor_dx(xp, g, out, x_shape):
    if g[0] is None:
        return None
    packed, pivots, _ = out
    low, high = _split(xp, packed)
    p = xp.permutation(pivots, length=x_shape[-2], dtype=packed.dtype)
    k = min(x_shape[-2:])
    return _pulled_back(xp, columns(xp, g[0], 0, k), rows(xp, g[0], 0, k), p, low, high)


@lu_factor.jvp
def lu_factor_jvp(xp, t, out, x_shape):
    packed, pivots, _ = out
    p = xp.permutation(pivots, length=x_shape[-2], dtype=packed.dtype)
    tl, tu = _pushed(xp, t, p, *_split(xp, packed))
    return _joined(xp, tl, tu, x_shape), None, None


# ---- the factors apart ----
@general(torch="linalg_lu", outputs=3, batch=behind)
def lu(xp, x):
    """Return L, U and P, which has no derivative."""
    packed, pivots, _ = lu_factor.implementation(xp, x)
    k = min(x.shape[-2:])
    low = lapack.lower_triangle(xp, packed[..., :k], -1)
    at = xp.module.arange(k)
    low[..., at, at] = 1
    return (
        low,
        lapack.upper_triangle(xp, packed[..., :k, :]),
        permutation.implementation(xp, pivots, length=x.shape[-2], dtype=x.dtype),
    )


@lu.vjp("x")
def lu_dx(xp, g, out):
    gl, gu, _ = g
    low, high, p = out
    return None if gl is None and gu is None else _pulled_back(xp, gl, gu, p, low, high)


@lu.jvp
def lu_jvp(xp, t, out):
    low, high, p = out
    return *_pushed(xp, t, p, low, high), None


def _pulled_back(xp, gl, gu, p, low, high):
    """Return the gradient of P L U for those of L and U; either may be None. Only their triangles count."""
    m, n, k = low.shape[-2], high.shape[-1], low.shape[-1]
    axis = len(low.shape)
    square_l = rows(xp, low, 0, k) if m > k else low
    square_u = columns(xp, high, 0, k) if n > k else high
    back_l, back_u = adjoint(xp, square_l), adjoint(xp, square_u)
    in_l = in_u = rest = None
    if gl is not None:
        gl = xp.triangle(gl, upper=False, k=-1)
        in_l = xp.matmul(adjoint(xp, low if m <= k else square_l), rows(xp, gl, 0, k) if m > k else gl)
        if m > k:
            rest = rows(xp, gl, k, m)  # of L, below the square: it is a part of a, times 1 / U
            in_u = -xp.matmul(adjoint(xp, rows(xp, low, k, m)), rest)
    if gu is not None:
        gu = xp.triangle(gu, upper=True, k=0)
        term = xp.matmul(columns(xp, gu, 0, k) if n > k else gu, back_u)
        in_u = term if in_u is None else in_u + term
        if n > k:
            rest = columns(xp, gu, k, n)  # of U, beside the square: it is 1 / L times a part of a
            term = -xp.matmul(rest, adjoint(xp, columns(xp, high, k, n)))
            in_l = term if in_l is None else in_l + term
    inner = None if in_l is None else xp.triangle(in_l, upper=False, k=-1)
    if in_u is not None:
        term = xp.triangle(in_u, upper=True, k=0)
        inner = term if inner is None else inner + term
    # L^-H @ inner @ U^-H
    back_unit = {"upper": True, "unitriangular": True, "left": True}
    first = xp.solve_triangular(back_l, inner, **back_unit)
    first = xp.solve_triangular(back_u, first, upper=False, unitriangular=False, left=False)
    if m > k:
        below = xp.zeros_like(rows(xp, low, k, m)) if rest is None else rest
        below = xp.solve_triangular(back_u, below, upper=False, unitriangular=False, left=False)
        first = xp.concat(first, below, axis=axis - 2)
    elif n > k:
        beside = xp.zeros_like(columns(xp, high, k, n)) if rest is None else rest
        first = xp.concat(first, xp.solve_triangular(back_l, beside, **back_unit), axis=axis - 1)
    return xp.matmul(p, first)


def _pushed(xp, t, p, low, high):
    """Return the tangents of L and U for that of P L U."""
    m, n, k = low.shape[-2], high.shape[-1], low.shape[-1]
    axis = len(low.shape)
    t = xp.matmul(transposed(xp, p), t)
    square_l = rows(xp, low, 0, k) if m > k else low
    square_u = columns(xp, high, 0, k) if n > k else high
    first = rows(xp, t, 0, k) if m > k else columns(xp, t, 0, k) if n > k else t
    inner = xp.solve_triangular(square_l, first, left=True, **UNIT)
    inner = xp.solve_triangular(square_u, inner, left=False, **UPPER)
    tl = xp.matmul(square_l, xp.triangle(inner, upper=False, k=-1))
    tu = xp.matmul(xp.triangle(inner, upper=True, k=0), square_u)
    if m > k:
        below = rows(xp, t, k, m) - xp.matmul(rows(xp, low, k, m), tu)
        tl = xp.concat(tl, xp.solve_triangular(square_u, below, left=False, **UPPER), axis=axis - 2)
    elif n > k:
        beside = columns(xp, t, k, n) - xp.matmul(tl, columns(xp, high, k, n))
        tu = xp.concat(tu, xp.solve_triangular(square_l, beside, left=True, **UNIT), axis=axis - 1)
    return tl, tu


# ---- taking the packed factors apart ----
@general(outputs=3, batch=behind)
def lu_unpack(xp, packed, pivots):
    """Return L, U and P of what `lu_factor` packed."""
    return *_split(xp, packed), xp.permutation(pivots, length=packed.shape[-2], dtype=packed.dtype)


@lu_unpack.vjp("packed")
def lu_unpack_dpacked(xp, g, packed_shape):
    return None if g[0] is None and g[1] is None else _joined(xp, g[0], g[1], packed_shape)


@lu_unpack.jvp
def lu_unpack_jvp(xp, t):
    k = min(t[0].shape[-2:])
    tl = xp.triangle(columns(xp, t[0], 0, k), upper=False, k=-1)
    return tl, xp.triangle(rows(xp, t[0], 0, k), upper=True, k=0), None


# ---- solving ----
@general(torch="linalg_lu_solve", shows="LU=packed adjoint=adjoint_ left pivots result")
def lu_solve(xp, packed, pivots, b, *, left, adjoint_):
    """Solve a @ x = b, a^H @ x = b, x @ a = b or x @ a^H = b for a = P L U."""
    if not left:  # x @ a = b is a^H @ x^H = b^H
        return adjoint(xp, _solved(xp, packed, pivots, adjoint(xp, b), not adjoint_))
    return _solved(xp, packed, pivots, b, adjoint_)


lu_solve.shows_edges("LinalgLuSolveBackward0", 0, 2)  # not the pivots


def _solved(xp, packed, pivots, b, adjoint_):
    p = xp.permutation(pivots, length=packed.shape[-1], dtype=packed.dtype)
    if adjoint_:
        back = adjoint(xp, packed)
        half = xp.solve_triangular(back, b, upper=False, left=True, unitriangular=False)
        return xp.matmul(p, xp.solve_triangular(back, half, upper=True, left=True, unitriangular=True))
    half = xp.solve_triangular(packed, xp.matmul(transposed(xp, p), b), left=True, **UNIT)
    return xp.solve_triangular(packed, half, left=True, **UPPER)


@lu_solve.vjp("packed", "pivots", "b")
def lu_solve_vjp(xp, g, packed, pivots, out, needed, packed_shape, b_shape, left, adjoint_):
    gb = xp.lu_solve(packed, pivots, g, left=left, adjoint_=not adjoint_)
    gpacked = None
    if needed[0]:
        # the gradient of a is -first @ second^H
        first, second = (gb, out) if left else (adjoint(xp, out), adjoint(xp, gb))
        if adjoint_:
            first, second = second, first
        low, high = _split(xp, packed)
        p = xp.permutation(pivots, length=packed_shape[-1], dtype=packed.dtype)
        first = xp.matmul(transposed(xp, p), first)
        in_l = xp.sum_to(-xp.matmul(first, adjoint(xp, xp.matmul(high, second))), shape=packed_shape)
        in_u = xp.sum_to(-xp.matmul(xp.matmul(adjoint(xp, low), first), adjoint(xp, second)), shape=packed_shape)
        gpacked = _joined(xp, in_l, in_u, packed_shape)
    return gpacked, None, xp.sum_to(gb, shape=b_shape) if needed[2] else None


@lu_solve.jvp
def lu_solve_jvp(xp, t, packed, pivots, out, left, adjoint_):
    tpacked, _, tb = t
    right = tb
    if tpacked is not None:
        low, high = _split(xp, packed)
        p = xp.permutation(pivots, length=packed.shape[-1], dtype=packed.dtype)
        ta = xp.matmul(xp.triangle(tpacked, upper=False, k=-1), high) + xp.matmul(
            low, xp.triangle(tpacked, upper=True, k=0)
        )
        ta = xp.matmul(p, ta)
        ta = adjoint(xp, ta) if adjoint_ else ta
        moved = -(xp.matmul(ta, out) if left else xp.matmul(out, ta))
        right = moved if tb is None else tb + moved
    return xp.lu_solve(packed, pivots, right, left=left, adjoint_=adjoint_)


@lu_solve.batch
def lu_solve_batch(call, args, batched, size, *, left, adjoint_):
    packed, pivots, b = args
    rows_of = vocabulary.expand_dims(pivots, axis=pivots.ndim)  # so that its rank is that of matrices
    packed, pivots, b = align_ranks([packed, rows_of, b], batched)
    return call(packed, vocabulary.squeeze(pivots, axis=pivots.ndim - 1), b, left=left, adjoint_=adjoint_)


# ---- LDL, by LAPACK. torch has no derivatives of it ----
def _without_derivative(primitive, name):
    """Give a primitive torch's refusals in place of rules."""

    @primitive.vjp(*primitive.inputs)
    def refuse_backward(xp, g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    @primitive.jvp
    def refuse_forward(xp, t):
        raise NotImplementedError(f"Trying to use forward AD with aten::{name} that does not support it.")


@general(outputs=3, batch=unmoved)
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
