"""Singular values and vectors under torch's names."""

from __future__ import annotations

from typing import Any

from ..._ops import svd as ops
from ..._ops.matrices import is_complex
from ...overrides import overridable, takes_out
from .. import _base
from .._object.return_types import make
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .creation import zeros
from .matrix_checks import is_differentiated, need_float, need_kernel, need_matrix
from .matrix_products import matmul
from .qr import linalg_qr
from .random_tensors import randn

linalg_svd_result = make("linalg_svd", "U", "S", "Vh")
svd_result = make("svd", "U", "S", "V")


def _check(input: Any, driver: str | None) -> None:
    need_matrix(input, "linalg.svd")
    need_float(input, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    need_kernel(input, "linalg_svd_cpu")


def _decomposed(input: Any, full_matrices: bool) -> Any:
    params = {"full_matrices": bool(full_matrices)}
    return record_keeping_outputs(ops.svd, (input,), params, "LinalgSvdBackward0", ("U", "S", "Vh"))


def _values(input: Any) -> Any:
    return _decomposed(input, False)[1] if is_differentiated(input) else record(ops.svdvals, (input,), {})


@takes_out(raised="cpu")
def linalg_svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:  # noqa: N803 - torch's name
    """Factor matrices into U @ diag(S) @ Vh, with orthonormal U and Vh.

    Args:
        A: (..., m, n)
        full_matrices: square U and Vh; else only as many columns as there are singular values
        driver: only for CUDA

    Returns:
        U, the singular values S in descending order, Vh.

    Example:
        >>> torch.linalg.svd(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    _check(A, driver)
    return linalg_svd_result(*_decomposed(A, full_matrices))


@takes_out(raised="cpu", out_dtype="result")
def linalg_svdvals(A: Any, *, driver: str | None = None) -> Any:  # noqa: N803 - torch's name
    """Return the singular values of matrices, in descending order.

    Args:
        A: (..., m, n)
        driver: only for CUDA

    Example:
        >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
        tensor([2., 1.])
    """
    _check(A, driver)
    return _values(A)


@takes_out(raised="cpu")
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Factor matrices into U @ diag(S) @ V^H; U and V are zeros where they are not wanted."""
    if input._array.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input._array.ndim} dimensions instead"
        )
    _check(input, None)
    if compute_uv:
        u, s, vh = _decomposed(input, not some)
        return svd_result(u, s, vh.mH)
    *lead, m, n = input._array.shape
    u, v = (zeros(*lead, size, size, dtype=_base.dtype_of(input), device=input.device) for size in (m, n))
    return svd_result(u, _values(input), v)


# ---- a few singular values of large matrices, by random projection (Halko, Martinsson, Tropp 2009) ----
def _basis(a: Any, q: int, niter: int, m: Any) -> Any:
    """Return orthonormal columns that nearly span the range of a - m."""
    own = _base.dtype_of(a)
    can_draw = is_complex(own) or a._array.dtype.name in ("float16", "float32", "float64")
    directions = randn(a._array.shape[-1], q, dtype=own if can_draw else None, device=a.device)
    # As many are drawn as in torch. More of them than `a` has columns give a matrix without full rank: the rest of its Q is
    # left to rounding, and has no derivative.
    directions = directions[:, : a._array.shape[-1]]

    def applied(matrix: Any, shift: Any, vectors: Any) -> Any:
        product = matmul(matrix, vectors)
        return linalg_qr(product if shift is None else product - matmul(shift, vectors))[0]

    found = applied(a, m, directions)
    for _ in range(niter):
        found = applied(a.mH, None if m is None else m.mH, found)
        found = applied(a, m, found)
    return found


def _low_rank(a: Any, q: int, niter: int, m: Any) -> Any:
    rows, columns = a._array.shape[-2:]
    turned = rows < columns
    if turned:
        a, m = a.mH, None if m is None else m.mH
    basis = _basis(a, q, niter, m)
    inner = matmul(basis.mH, a)
    if m is not None:
        inner = inner - matmul(basis.mH, m)
    u, s, vh = linalg_svd(inner, full_matrices=False)
    u, v = matmul(basis, u), vh.mH
    return (v, s, u) if turned else (u, s, v)


@overridable
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:  # noqa: N803 - torch's names
    """Return about the `q` largest singular values of A - M, and their vectors."""
    if M is not None:
        M = M.broadcast_to(A.size())  # noqa: N806
    return _low_rank(A, 6 if q is None else q, 2 if niter is None else niter, M)


@overridable
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:  # noqa: N803 - torch's name
    """Return about the `q` principal components of rows."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (0 <= q <= min(m, n)):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _low_rank(A - A.mean(dim=(-2,), keepdim=True) if center else A, q, niter, None)
