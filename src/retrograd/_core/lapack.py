"""LAPACK on raw arrays, by the shortest way.

NumPy's loops over batches are called without the wrappers of `numpy.linalg`, which take ten times as long as a small
factorization. They fill a result with NaN where an algorithm fails; the caller looks. CuPy has the wrappers only. Where
NumPy has no loop, scipy's functions for one matrix are called for each of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg

loops: Any = _umath_linalg
BLOCK = 64  # columns that LAPACK works on at once, if it is given the memory for them
broadcast_shapes = np.broadcast_shapes


def on_cpu(xp: Any) -> bool:
    """Tell whether arrays are NumPy's."""
    return xp.module is np


def functions(dtype: Any, *names: str) -> Any:
    """Return LAPACK functions of scipy for a dtype."""
    from scipy.linalg.lapack import get_lapack_funcs

    return get_lapack_funcs(names, dtype=dtype)


def trsm(dtype: Any) -> Any:
    """Return the BLAS function that solves triangular systems of a dtype."""
    from scipy.linalg.blas import get_blas_funcs

    return get_blas_funcs("trsm", dtype=dtype)


def info(number: Any) -> Any:
    """Return what LAPACK reports about one matrix, as an array."""
    return np.array(number, np.int32)


def complex_of(dtype: Any) -> Any:
    """Return the complex dtype that has a dtype's precision."""
    return np.result_type(dtype, np.complex64)


def failed(probe: Any) -> bool:
    """Tell whether there is a NaN among entries of the results, one of each."""
    if probe.size == 1:
        one = probe.item()
        return bool(one != one)
    return bool((probe != probe).any())


def one_by_one(xp: Any, function: Callable[..., Any], *arrays: Any, ranks: tuple[int, ...]) -> tuple[Any, ...]:
    """Call a function that knows no batches on each part of a batch; return its results, stacked, as a tuple.

    The arrays share their leading axes; `ranks` says how many axes of each are its own. It runs on the CPU.
    """
    lead = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    host = [a if on_cpu(xp) else a.get() for a in arrays]
    if not lead:
        return tuple(xp.module.asarray(part) for part in function(*host))
    count = math.prod(lead)
    flat = [a.reshape(count, *a.shape[a.ndim - rank :]) for a, rank in zip(host, ranks, strict=True)]
    found = [function(*parts) for parts in zip(*flat, strict=True)]
    return tuple(
        xp.module.asarray(np.stack(parts).reshape(*lead, *np.shape(parts[0]))) for parts in zip(*found, strict=True)
    )


# ---- triangles ----
@lru_cache(maxsize=64)
def _below(m: int, n: int, k: int) -> Any:
    return np.tri(m, n, k, dtype=bool)


def upper_triangle(xp: Any, x: Any) -> Any:
    """Return what is on and above the diagonal."""
    if not on_cpu(xp) or max(x.shape[-2:]) > BLOCK:
        return xp.module.triu(x)
    return np.where(_below(*x.shape[-2:], -1), x.dtype.type(0), x)  # a third of the time of `triu`


def lower_triangle(xp: Any, x: Any, k: int) -> Any:
    """Return what is on and below a diagonal."""
    if not on_cpu(xp) or max(x.shape[-2:]) > BLOCK:
        return xp.module.tril(x, k)
    return np.where(_below(*x.shape[-2:], k), x, x.dtype.type(0))


# ---- decompositions ----
def cholesky(xp: Any, x: Any, upper: bool) -> Any:
    """Factor positive-definite matrices. The last entry is NaN where one is not."""
    if on_cpu(xp):
        return (loops.cholesky_up if upper else loops.cholesky_lo)(x)
    from cupyx import errstate

    try:
        with errstate(linalg="raise"):
            factor = xp.module.linalg.cholesky(x.swapaxes(-1, -2).conj() if upper else x)
    except np.linalg.LinAlgError:
        return xp.module.full_like(x, np.nan)
    return factor.swapaxes(-1, -2).conj() if upper else factor


def eigh(xp: Any, x: Any, uplo: str) -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    if on_cpu(xp):
        return (loops.eigh_lo if uplo == "L" else loops.eigh_up)(x)
    return tuple(xp.module.linalg.eigh(x, UPLO=uplo))


def eigvalsh(xp: Any, x: Any, uplo: str) -> Any:
    """Return eigenvalues of Hermitian matrices."""
    if on_cpu(xp):
        return (loops.eigvalsh_lo if uplo == "L" else loops.eigvalsh_up)(x)
    return xp.module.linalg.eigvalsh(x, UPLO=uplo)


def eig(xp: Any, x: Any) -> Any:
    """Return eigenvalues and eigenvectors of square matrices; complex ones of real matrices, too."""
    return loops.eig(x) if on_cpu(xp) else tuple(xp.module.linalg.eig(x))


def eigvals(xp: Any, x: Any) -> Any:
    """Return eigenvalues of square matrices."""
    return loops.eigvals(x) if on_cpu(xp) else xp.module.linalg.eigvals(x)


def qr(xp: Any, x: Any, mode: str) -> Any:
    """Factor into Q and R; Q is None in mode "r"."""
    m, n = x.shape[-2:]
    if not on_cpu(xp) or x.ndim != 2 or not x.size:
        if mode == "r":
            return None, xp.module.linalg.qr(x, mode="r")
        return tuple(xp.module.linalg.qr(x, mode=mode))
    factorize, multiply = functions(x.dtype, "geqrf", "ungqr" if x.dtype.kind == "c" else "orgqr")
    reflectors, tau = factorize(x, lwork=BLOCK * n)[:2]
    k = min(m, n)
    if mode == "r":
        return None, upper_triangle(xp, reflectors[:k])
    if mode == "reduced" or m == k:
        return multiply(reflectors[:, :k], tau, lwork=BLOCK * k)[0], upper_triangle(xp, reflectors[:k])
    wide = np.zeros((m, m), x.dtype, order="F")
    wide[:, :n] = reflectors
    return multiply(wide, tau, lwork=BLOCK * m)[0], upper_triangle(xp, reflectors)


def geqrf(xp: Any, x: Any) -> Any:
    """Return R with the reflectors below it, and the reflectors' factors."""
    if not on_cpu(xp) or x.ndim != 2 or not x.size:
        reflectors, tau = xp.module.linalg.qr(x, mode="raw")
        return xp.module.ascontiguousarray(reflectors.swapaxes(-1, -2)), tau
    return functions(x.dtype, "geqrf")[0](x, lwork=BLOCK * x.shape[1])[:2]
