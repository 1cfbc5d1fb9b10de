"""Shape rules of operations whose implementations want elements: what they make on the meta device. See Note [Meta arrays].

A rule has the parameters of the primitive's implementation, without `xp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .meta_arrays import fresh, reduced

INFO = np.dtype(np.int32)  # what LAPACK says of a matrix, and its pivots


def _real(x: Any) -> Any:
    return np.zeros(0, x.dtype).real.dtype


def _complex(x: Any) -> Any:
    return np.result_type(x.dtype, np.complex64)


def _like(x: Any) -> Any:
    return fresh(x.shape, x.dtype)


def _each(x: Any, *sizes: int, dtype: Any = None) -> Any:
    """Make what there is for each matrix of a stack."""
    return fresh((*x.shape[:-2], *sizes), x.dtype if dtype is None else dtype)


def _rank(x: Any) -> int:
    return min(x.shape[-2:])  # type: ignore[no-any-return]


def _along(x: Any, axis: int, size: int, dtype: Any) -> Any:
    """Make an array whose `axis` has another size."""
    axis %= x.ndim
    return fresh((*x.shape[:axis], size, *x.shape[axis + 1 :]), dtype)


def _in_planes(x: Any, sizes: Any) -> Any:
    return fresh((*x.shape[: x.ndim - len(sizes)], *sizes), x.dtype)


# ---- factors of matrices ----
def _lu(x: Any, pivots: Any = None) -> Any:
    m, n = x.shape[-2:]
    return _each(x, m, min(m, n)), _each(x, min(m, n), n), _each(x, m, m)


def _qr(x: Any, *, mode: str) -> Any:
    m, n = x.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return fresh((0,), x.dtype) if mode == "r" else _each(x, m, k), _each(x, k, n)


def _svd(x: Any, *, full_matrices: bool) -> Any:
    m, n = x.shape[-2:]
    k = min(m, n)
    left, right = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return _each(x, *left), _each(x, k, dtype=_real(x)), _each(x, *right)


# ---- systems of equations ----
def _solved(a: Any, b: Any, own: int = 2) -> Any:
    """Make the solutions for right sides of `own` axes, which broadcast against the matrices."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[: b.ndim - own])
    return fresh((*lead, *b.shape[b.ndim - own :]), b.dtype)


def _lstsq(a: Any, b: Any, *, rcond: Any) -> Any:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    solution = fresh((*lead, a.shape[-1], b.shape[-1]), b.dtype)
    return solution, _each(a, dtype=np.int64), _each(a, _rank(a), dtype=_real(a))


def _matrix_rank(x: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    shapes = [np.shape(one) if not hasattr(one, "shape") else one.shape for one in (atol, rtol)]
    return fresh(np.broadcast_shapes(x.shape[:-2], *shapes), np.int64)


# ---- counts ----
def _histogram(x: Any, *others: Any, bins: Any, lead: int, **_: Any) -> Any:
    edges = others[0].shape[-1] if bins is None else bins + 1
    return fresh((*x.shape[:lead], edges - 1), x.dtype), fresh((*x.shape[:lead], edges), x.dtype)


# By the names of primitives and fused operations.
shape_rules: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        """inv matrix_exp cofactors householder_product put scatter_add scatter_assign scatter_reduce
        cholesky_inverse""".split(),  # noqa: SIM905 - names read better as text
        lambda x, *others, **_: _like(x),
    ),
    **dict.fromkeys(("cofactors_slope", "prod_back"), lambda g, x, **_: _like(x)),
    "ormqr": lambda x, tau, other, **_: _like(other),
    "masked_scatter": lambda x, mask, src: fresh(np.broadcast_shapes(x.shape, mask.shape), x.dtype),
    "nansum": lambda x, *, axis, keepdims: reduced(x, axis, keepdims, x.dtype),
    # factors of matrices
    "cholesky": lambda x, **_: (_like(x), _each(x, dtype=INFO)),
    "permutation": lambda x, *, length, dtype: fresh((*x.shape[:-1], length, length), getattr(dtype, "numpy", dtype)),
    "lu_factor": lambda x: (_like(x), _each(x, _rank(x), dtype=INFO), _each(x, dtype=INFO)),
    "lu": _lu,
    "lu_unpack": _lu,
    "ldl_factor": lambda x, **_: (_like(x), _each(x, x.shape[-2], dtype=INFO), _each(x, dtype=INFO)),
    "qr": _qr,
    "geqrf": lambda x: (_like(x), _each(x, _rank(x))),
    "eigh": lambda x, **_: (_each(x, x.shape[-2], dtype=_real(x)), _like(x)),
    "eigvalsh": lambda x, **_: _each(x, x.shape[-2], dtype=_real(x)),
    "eig": lambda x: (_each(x, x.shape[-2], dtype=_complex(x)), fresh(x.shape, _complex(x))),
    "eigvals": lambda x: _each(x, x.shape[-2], dtype=_complex(x)),
    "svd": _svd,
    "svdvals": lambda x: _each(x, _rank(x), dtype=_real(x)),
    # systems of equations
    "cholesky_solve": lambda b, factor, **_: _solved(factor, b),
    "lu_solve": lambda packed, pivots, b, **_: _solved(packed, b),
    "ldl_solve": lambda packed, pivots, b, **_: _solved(packed, b),
    "solve_triangular": lambda a, b, **_: _solved(a, b),
    "solve": lambda a, b, *, left, vector: _solved(a, b, 1 if vector else 2),
    "singular_at": lambda x: _each(x, dtype=INFO),
    "det": lambda x: _each(x),
    "slogdet": lambda x: (_each(x), _each(x, dtype=_real(x))),
    "pinv": lambda x, *limits, **_: _each(x, x.shape[-1], x.shape[-2]),
    "matrix_rank": _matrix_rank,
    "lstsq": _lstsq,
    # Fourier
    "fft_c2c": lambda x, **_: fresh(x.shape, _complex(x)),
    "fft_r2c": lambda x, *, axes, norm, onesided: _along(
        x, axes[-1], x.shape[axes[-1]] // 2 + 1 if onesided else x.shape[axes[-1]], _complex(x)
    ),
    **dict.fromkeys(("fft_c2r", "fft_r2c_adjoint"), lambda x, *, axes, norm, size: _along(x, axes[-1], size, _real(x))),
    "fft_c2r_adjoint": lambda g, *, axes, norm, size: _along(g, axes[-1], size // 2 + 1, _complex(g)),
    # places and counts
    "searchsorted": lambda boundaries, values, *, right, dtype: fresh(values.shape, getattr(dtype, "numpy", dtype)),
    "histc": lambda x, *, bins, lead, **_: fresh((*x.shape[:lead], bins), x.dtype),
    "histogram": _histogram,
    "rank_among_marked": lambda marks, indices, **_: fresh(marks.shape, np.int64),
    "nonzero_static": lambda x, *, count, **_: fresh((count, x.ndim), np.int64),
    "avg_pool": lambda x, *, windows, counts: _in_planes(x, [one.count for one in windows]),
    "avg_pool_back": lambda g, *, windows, counts: _in_planes(g, [one.size for one in windows]),
}
