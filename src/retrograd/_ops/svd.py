"""Singular values and vectors."""

from __future__ import annotations

from .._core import lapack
from .._core.primitive import behind, general, unmoved
from . import phases  # noqa: F401 - the rules use its name
from .matrices import (
    LinAlgError,
    adjoint,
    as_column,
    as_row,
    batch_element,
    columns,
    diagonal_matrix,
    diagonal_of,
    differences,
    is_complex,
    rows,
    without_diagonal,
)

PHASE = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this phase term, making it ill-defined."
)


@general(torch="linalg_svd", outputs=3, batch=unmoved)
def svd(xp, x, *, full_matrices):
    if lapack.on_cpu(xp):
        u, s, vh = (lapack.loops.svd_f if full_matrices else lapack.loops.svd_s)(x)
    else:
        u, s, vh = xp.module.linalg.svd(x, full_matrices=full_matrices)
    if lapack.failed(s[..., :1]):
        raise _not_converged(xp, x)
    return u, s, vh


def _not_converged(xp, x):
    lead = x.shape[:-2]
    bad = ~xp.module.isfinite(x).all(axis=(-2, -1)).reshape(-1)
    at = int(bad.argmax())
    why = (
        "because the input matrix contained non-finite values."
        if bad.any()
        else "because the input matrix is ill-conditioned or has too many repeated singular values (error code: 1)."
    )
    return LinAlgError(f"linalg.svd: {batch_element(at, lead)}The algorithm failed to converge {why}")


def _thin(xp, u, vh, k):
    """Leave the vectors that belong to singular values."""
    u = None if u is None else columns(xp, u, 0, k) if u.shape[-1] > k else u
    return u, None if vh is None else rows(xp, vh, 0, k) if vh.shape[-2] > k else vh


def _skew(xp, x):
    return x - adjoint(xp, x)


def _hermitian(xp, x):
    return x + adjoint(xp, x)


@svd.vjp("x")
def svd_dx(xp, g, x_shape, out):
    gu, gs, gvh = g
    u, s, vh = out
    m, n = x_shape[-2:]
    k = min(m, n)
    u, vh = _thin(xp, u, vh, k)
    gu, gvh = _thin(xp, gu, gvh, k)
    if gu is None and gvh is None:
        return xp.matmul(u * as_row(xp, gs), vh)
    complex_ = is_complex(u.dtype)
    # the parts of the gradients that turn U and V among their own columns
    in_u = None if gu is None else xp.matmul(adjoint(xp, u), gu)
    in_v = None if gvh is None else xp.matmul(vh, adjoint(xp, gvh))
    if complex_:
        xp.refuse_phase(in_v if in_u is None else in_u if in_v is None else in_u + in_v, message=PHASE)
    gaps = differences(xp, s * s)
    inner = None
    if in_u is not None:
        inner = without_diagonal(xp, _skew(xp, in_u) / gaps) * as_row(xp, s)
    if in_v is not None:
        term = without_diagonal(xp, _skew(xp, in_v) / gaps) * as_column(xp, s)
        inner = term if inner is None else inner + term
    if gs is not None:
        inner = inner + diagonal_matrix(xp, gs)
    if complex_ and in_u is not None:
        inner = inner + diagonal_matrix(xp, diagonal_of(xp, _skew(xp, in_u)) / (2 * s))
    # and the parts that turn them out of the spaces they span
    if gu is not None and m > k:
        full = xp.matmul(u, inner) + (gu - xp.matmul(u, in_u)) / as_row(xp, s)
        full = xp.matmul(full, vh)
    else:
        full = xp.matmul(u, xp.matmul(inner, vh))
    if gvh is not None and n > k:
        full = full + xp.matmul(u, (gvh - xp.matmul(adjoint(xp, in_v), vh)) / as_column(xp, s))
    return full


@svd.jvp
def svd_jvp(xp, t, out, x_shape, full_matrices):
    u, s, vh = out
    m, n = x_shape[-2:]
    k = min(m, n)
    u, vh = _thin(xp, u, vh, k)
    right = xp.matmul(t, adjoint(xp, vh))
    turned = xp.matmul(adjoint(xp, u), right)
    d = diagonal_of(xp, turned)
    gaps = differences(xp, s * s)
    in_u = without_diagonal(xp, _hermitian(xp, turned * as_row(xp, s)) / gaps)
    in_v = without_diagonal(xp, _hermitian(xp, turned * as_column(xp, s)) / gaps)
    if is_complex(d.dtype):
        phase = diagonal_matrix(xp, (d - xp.conj(d)) / (4 * s))
        in_u, in_v = in_u + phase, in_v - phase
    tu, tvh = xp.matmul(u, in_u), xp.matmul(adjoint(xp, in_v), vh)
    if m > k:
        tu = tu + (right - xp.matmul(u, turned)) / as_row(xp, s)
    if n > k:
        left = xp.matmul(adjoint(xp, u), t)
        tvh = tvh + (left - xp.matmul(turned, vh)) / as_column(xp, s)
    if full_matrices:  # as torch: the vectors that complete the space do not move
        rank = len(x_shape)
        if m > k:
            tu = xp.concat(tu, xp.zeros_like(columns(xp, out[0], k, m)), axis=rank - 1)
        if n > k:
            tvh = xp.concat(tvh, xp.zeros_like(rows(xp, out[2], k, n)), axis=rank - 2)
    return tu, (xp.real(d) if is_complex(d.dtype) else xp.copy(d)), tvh


@general(differentiable=False, batch=behind)
def svdvals(xp, x):
    s = lapack.loops.svd(x) if lapack.on_cpu(xp) else xp.module.linalg.svd(x, compute_uv=False)
    if lapack.failed(s[..., :1]):
        raise _not_converged(xp, x)
    return s
