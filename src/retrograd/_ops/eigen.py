"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from .._core import lapack
from .._core.primitive import behind, general, unmoved
from . import phases, solving  # noqa: F401 - the rules use their names
from .matrices import (
    LinAlgError,
    adjoint,
    as_column,
    as_row,
    diagonal_matrix,
    diagonal_of,
    differences,
    is_complex,
    without_diagonal,
)

MATRICES = {"left": True, "vector": False}
PHASE = (
    "linalg_{}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The "
    "specified loss function depends on this quantity, so it is ill-defined."
)


# ---- Hermitian matrices ----
def _converged(x, *found):
    """Return what was found; NaN in it is an error where it does not come from the input."""
    if lapack.failed(found[0][..., -1:]) and not lapack.failed(x):
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated eigenvalues (error code: 1)."
        )
    return found


@general(torch="linalg_eigh", outputs=2, batch=unmoved)
def eigh(xp, x, *, uplo):
    return _converged(x, *lapack.eigh(xp, x, uplo))


@eigh.vjp("x")
def eigh_dx(xp, g, out):
    gl, gv = g
    values, vectors = out
    back = adjoint(xp, vectors)
    if gv is None:
        return xp.matmul(vectors * as_row(xp, gl), back)
    inner = xp.matmul(back, gv)
    if is_complex(inner.dtype):
        xp.refuse_phase(inner, message=PHASE.format("eigh"))
    inner = without_diagonal(xp, (inner - adjoint(xp, inner)) * 0.5 / differences(xp, values))
    if gl is not None:
        inner = inner + diagonal_matrix(xp, gl)
    return xp.matmul(xp.matmul(vectors, inner), back)


@eigh.jvp
def eigh_jvp(xp, t, out):
    values, vectors = out
    turned = xp.matmul(xp.matmul(adjoint(xp, vectors), t), vectors)
    tl = diagonal_of(xp, turned)
    tv = xp.matmul(vectors, without_diagonal(xp, turned / differences(xp, values)))
    return (xp.real(tl) if is_complex(tl.dtype) else xp.copy(tl)), tv


@general(differentiable=False, batch=unmoved)
def eigvalsh(xp, x, *, uplo):
    return _converged(x, lapack.eigvalsh(xp, x, uplo))[0]


# ---- any square matrices ----
def _finite(xp, x):
    if not xp.module.isfinite(x).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return x


@general(torch="linalg_eig", outputs=2, batch=behind)
def eig(xp, x):
    """Return complex eigenvalues and vectors, even where all are real."""
    values, vectors = lapack.eig(xp, _finite(xp, x))
    wanted = lapack.complex_of(x.dtype)
    return values.astype(wanted, copy=False), vectors.astype(wanted, copy=False)


@eig.vjp("x")
def eig_dx(xp, g, out):
    gl, gv = g
    values, vectors = out
    back = adjoint(xp, vectors)
    if gv is None:
        return xp.solve(back, as_column(xp, gl) * back, **MATRICES)
    inner = xp.matmul(back, gv)
    xp.refuse_phase(inner, message=PHASE.format("eig"))
    lengths = xp.real(diagonal_of(xp, inner))  # vectors keep their length
    inner = inner - xp.matmul(back, vectors * as_row(xp, lengths))
    inner = without_diagonal(xp, inner / xp.conj(differences(xp, values)))
    if gl is not None:
        inner = inner + diagonal_matrix(xp, gl)
    return xp.solve(back, xp.matmul(inner, back), **MATRICES)


@eig.jvp
def eig_jvp(xp, t, out):
    values, vectors = out
    if not is_complex(t.dtype):
        t = xp.astype(t, dtype=vectors.dtype)
    turned = xp.solve(vectors, xp.matmul(t, vectors), **MATRICES)
    tv = xp.matmul(vectors, without_diagonal(xp, turned / differences(xp, values)))
    lengths = xp.real(xp.sum(xp.conj(vectors) * tv, axis=(len(tv.shape) - 2,), keepdims=True))
    return xp.copy(diagonal_of(xp, turned)), tv - vectors * lengths


@general(differentiable=False, batch=behind)
def eigvals(xp, x):
    return lapack.eigvals(xp, _finite(xp, x)).astype(lapack.complex_of(x.dtype), copy=False)
