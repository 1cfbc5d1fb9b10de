"""Shape rules of operations whose implementations want elements: what they make on the meta device. See Note [Meta arrays].

A rule has the parameters of the primitive's implementation, without `xp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .meta_arrays import fresh, reduced

INFO = np.dtype(np.int32)  # what LAPACK says of a matrix, and its pivots

shape_rules: dict[str, Callable[..., Any]] = {}


def shape_rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the shape rule of some primitives or fused operations, by their names."""

    def declare(rule: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            shape_rules[name] = rule
        return rule

    return declare


def _real(x: Any) -> Any:
    return np.zeros(0, x.dtype).real.dtype


def _complex(x: Any) -> Any:
    return np.result_type(x.dtype, np.complex64)


def _at(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


# ---- as the first array ----
@shape_rule(
    "inv", "matrix_exp", "cofactors", "householder_product", "put", "scatter_add", "scatter_assign", "scatter_reduce"
)
def _as_first(x: Any, *others: Any, **_: Any) -> Any:
    return fresh(x.shape, x.dtype)


@shape_rule("cofactors_slope", "prod_back")
def _as_second(_: Any, x: Any, **__: Any) -> Any:
    return fresh(x.shape, x.dtype)


@shape_rule("ormqr")
def _as_third(_: Any, __: Any, x: Any, **___: Any) -> Any:
    return fresh(x.shape, x.dtype)


@shape_rule("masked_scatter")
def _masked_scatter(x: Any, mask: Any, src: Any) -> Any:
    return fresh(np.broadcast_shapes(x.shape, mask.shape), x.dtype)


# ---- reductions ----
@shape_rule("nansum")
def _nansum(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return reduced(x, axis, keepdims, x.dtype)


# ---- factors of matrices ----
@shape_rule("cholesky")
def _cholesky(x: Any, *, upper: bool) -> Any:
    return fresh(x.shape, x.dtype), fresh(x.shape[:-2], INFO)


@shape_rule("cholesky_inverse")
def _cholesky_inverse(factor: Any, *, upper: bool) -> Any:
    return fresh(factor.shape, factor.dtype)


@shape_rule("cholesky_solve")
def _cholesky_solve(b: Any, factor: Any, *, upper: bool) -> Any:
    lead = np.broadcast_shapes(b.shape[:-2], factor.shape[:-2])
    return fresh((*lead, *b.shape[-2:]), b.dtype)


@shape_rule("permutation")
def _permutation(pivots: Any, *, length: int, dtype: Any) -> Any:
    return fresh((*pivots.shape[:-1], length, length), getattr(dtype, "numpy", dtype))


@shape_rule("lu_factor")
def _lu_factor(x: Any) -> Any:
    return fresh(x.shape, x.dtype), fresh((*x.shape[:-2], min(x.shape[-2:])), INFO), fresh(x.shape[:-2], INFO)


@shape_rule("lu", "lu_unpack")
def _lu(x: Any, pivots: Any = None) -> Any:
    *lead, m, n = x.shape
    k = min(m, n)
    return fresh((*lead, m, k), x.dtype), fresh((*lead, k, n), x.dtype), fresh((*lead, m, m), x.dtype)


@shape_rule("lu_solve")
def _lu_solve(packed: Any, pivots: Any, b: Any, *, left: bool, adjoint_: bool) -> Any:
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    return fresh((*lead, *b.shape[-2:]), b.dtype)


@shape_rule("ldl_factor")
def _ldl_factor(x: Any, *, hermitian: bool) -> Any:
    return fresh(x.shape, x.dtype), fresh(x.shape[:-1], INFO), fresh(x.shape[:-2], INFO)


@shape_rule("ldl_solve")
def _ldl_solve(packed: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    return fresh((*lead, *b.shape[-2:]), b.dtype)


@shape_rule("qr")
def _qr(x: Any, *, mode: str) -> Any:
    *lead, m, n = x.shape
    k = m if mode == "complete" else min(m, n)
    return fresh((0,) if mode == "r" else (*lead, m, k), x.dtype), fresh((*lead, k, n), x.dtype)


@shape_rule("geqrf")
def _geqrf(x: Any) -> Any:
    return fresh(x.shape, x.dtype), fresh((*x.shape[:-2], min(x.shape[-2:])), x.dtype)


@shape_rule("eigh")
def _eigh(x: Any, *, uplo: str) -> Any:
    return fresh(x.shape[:-1], _real(x)), fresh(x.shape, x.dtype)


@shape_rule("eigvalsh")
def _eigvalsh(x: Any, *, uplo: str) -> Any:
    return fresh(x.shape[:-1], _real(x))


@shape_rule("eig")
def _eig(x: Any) -> Any:
    return fresh(x.shape[:-1], _complex(x)), fresh(x.shape, _complex(x))


@shape_rule("eigvals")
def _eigvals(x: Any) -> Any:
    return fresh(x.shape[:-1], _complex(x))


@shape_rule("svd")
def _svd(x: Any, *, full_matrices: bool) -> Any:
    *lead, m, n = x.shape
    k = min(m, n)
    left, right = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return fresh((*lead, *left), x.dtype), fresh((*lead, k), _real(x)), fresh((*lead, *right), x.dtype)


@shape_rule("svdvals")
def _svdvals(x: Any) -> Any:
    return fresh((*x.shape[:-2], min(x.shape[-2:])), _real(x))


# ---- systems of equations ----
@shape_rule("solve_triangular")
def _solve_triangular(a: Any, b: Any, **_: Any) -> Any:
    return fresh((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)


@shape_rule("solve")
def _solve(a: Any, b: Any, *, left: bool, vector: bool) -> Any:
    own = 1 if vector else 2
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[: b.ndim - own])
    return fresh((*lead, *b.shape[b.ndim - own :]), b.dtype)


@shape_rule("singular_at")
def _singular_at(x: Any) -> Any:
    return fresh(x.shape[:-2], INFO)


@shape_rule("det")
def _det(x: Any) -> Any:
    return fresh(x.shape[:-2], x.dtype)


@shape_rule("slogdet")
def _slogdet(x: Any) -> Any:
    return fresh(x.shape[:-2], x.dtype), fresh(x.shape[:-2], _real(x))


@shape_rule("pinv")
def _pinv(x: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    return fresh((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


@shape_rule("matrix_rank")
def _matrix_rank(x: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    shapes = [np.shape(one) if not hasattr(one, "shape") else one.shape for one in (atol, rtol)]
    return fresh(np.broadcast_shapes(x.shape[:-2], *shapes), np.int64)


@shape_rule("lstsq")
def _lstsq(a: Any, b: Any, *, rcond: Any) -> Any:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    solution = fresh((*lead, a.shape[-1], b.shape[-1]), b.dtype)
    return solution, fresh(a.shape[:-2], np.int64), fresh((*a.shape[:-2], min(a.shape[-2:])), _real(a))


# ---- Fourier ----
@shape_rule("fft_c2c")
def _c2c(x: Any, *, axes: Any, norm: Any, forward: bool) -> Any:
    return fresh(x.shape, _complex(x))


@shape_rule("fft_r2c")
def _r2c(x: Any, *, axes: Any, norm: Any, onesided: bool) -> Any:
    shape = _at(x.shape, axes[-1], x.shape[axes[-1]] // 2 + 1) if onesided else x.shape
    return fresh(shape, _complex(x))


@shape_rule("fft_c2r", "fft_r2c_adjoint")
def _c2r(x: Any, *, axes: Any, norm: Any, size: int) -> Any:
    return fresh(_at(x.shape, axes[-1], size), _real(x))


@shape_rule("fft_c2r_adjoint")
def _c2r_adjoint(g: Any, *, axes: Any, norm: Any, size: int) -> Any:
    return fresh(_at(g.shape, axes[-1], size // 2 + 1), _complex(g))


# ---- places and counts ----
@shape_rule("searchsorted")
def _searchsorted(boundaries: Any, values: Any, *, right: bool, dtype: Any) -> Any:
    return fresh(values.shape, getattr(dtype, "numpy", dtype))


@shape_rule("histc")
def _histc(x: Any, *, bins: int, low: Any, high: Any, lead: int) -> Any:
    return fresh((*x.shape[:lead], bins), x.dtype)


@shape_rule("histogram")
def _histogram(x: Any, *others: Any, bins: Any, bounds: Any, density: bool, weighted: bool, lead: int) -> Any:
    edges = others[0].shape[-1] if bins is None else bins + 1
    return fresh((*x.shape[:lead], edges - 1), x.dtype), fresh((*x.shape[:lead], edges), x.dtype)


@shape_rule("rank_among_marked")
def _rank_among_marked(marks: Any, indices: Any, *, axis: int, shape: Any) -> Any:
    return fresh(marks.shape, np.int64)


@shape_rule("nonzero_static")
def _nonzero_static(x: Any, *, count: int, fill_value: int) -> Any:
    return fresh((count, x.ndim), np.int64)


@shape_rule("avg_pool")
def _avg_pool(x: Any, *, windows: Any, counts: Any) -> Any:
    return fresh((*x.shape[: x.ndim - len(windows)], *[one.count for one in windows]), x.dtype)


@shape_rule("avg_pool_back")
def _avg_pool_back(g: Any, *, windows: Any, counts: Any) -> Any:
    return fresh((*g.shape[: g.ndim - len(windows)], *[one.size for one in windows]), g.dtype)
