"""QR decomposition and Householder reflectors under torch's names."""

from __future__ import annotations

from typing import Any

from ..._ops import qr as ops
from ..._ops import reflectors
from ..._warnings import warn_once
from ...overrides import takes_out
from .._object.return_types import make, named
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .matrix_checks import need_float, need_kernel, need_matrix, need_same_batch, need_tensor, scalar_name

linalg_qr_result = make("linalg_qr", "Q", "R")
qr_result = make("qr", "Q", "R")
geqrf_result = make("geqrf", "a", "tau")


def _factors(input: Any, mode: str) -> Any:
    need_matrix(input, "linalg.qr")
    need_float(input, "linalg.qr")
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    need_kernel(input, "geqrf_cpu")
    return record_keeping_outputs(ops.qr, (input,), {"mode": mode}, "LinalgQrBackward0", ("Q", "R"))


@takes_out(raised="cpu")
def linalg_qr(A: Any, mode: str = "reduced") -> Any:  # noqa: N803 - torch's name
    """Factor matrices into Q @ R, with orthonormal columns Q and upper triangles R.

    Args:
        A: (..., m, n)
        mode: "reduced", "complete" (a square Q) or "r" (only R)

    Example:
        >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.allclose(Q @ R, torch.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-6)
        True
    """
    return named(linalg_qr_result, _factors(A, mode))


@takes_out(raised="cpu")
def qr(input: Any, some: bool = True) -> Any:
    """Factor matrices into Q, of orthonormal columns, and an upper triangle R."""
    need_tensor(input, "qr", "input")
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe boolean "
        "parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced "
        "with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return named(qr_result, _factors(input, "reduced" if some else "complete"))


@takes_out(raised="cpu")
def geqrf(input: Any) -> Any:
    """Factor matrices into R and reflectors whose product is Q."""
    if input._array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    need_kernel(input, "geqrf_cpu")
    return geqrf_result(*record(ops.geqrf, (input,), {}, "GeqrfBackward0"))


def _need_vectors(tau: Any) -> None:
    if not tau._array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")


def _need_tau(input: Any, tau: Any, name: str) -> None:
    if tau._array.ndim != input._array.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau._array.ndim} "
            f"and input.ndim is equal to {input._array.ndim}"
        )
    need_same_batch(tau, input, name, "tau")


@takes_out(raised="cpu")
def linalg_householder_product(input: Any, tau: Any) -> Any:
    """Multiply reflectors: the first columns of the Q that `geqrf` describes."""
    name = "torch.linalg.householder_product"
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    rows, columns = input._array.shape[-2:]
    if rows < columns:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    _need_vectors(tau)
    if columns < tau._array.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _need_tau(input, tau, name)
    if input._array.dtype != tau._array.dtype:
        raise RuntimeError(f"{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(input)}")
    need_kernel(input, "orgqr_cpu")
    return record(reflectors.householder_product, (input, tau), {}, "LinalgHouseholderProductBackward0")


@takes_out(raised="cpu")
def orgqr(input: Any, input2: Any) -> Any:
    """Multiply reflectors: another name of `linalg.householder_product`."""
    return linalg_householder_product(input, input2)


@takes_out(raised="cpu")
def ormqr(input: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    """Multiply a matrix by the Q that reflectors describe, without building it."""
    tau, other = input2, input3
    _check_product(input, tau, other, left)
    params = {"left": bool(left), "transpose": bool(transpose)}
    return record(reflectors.ormqr, (input, tau, other), params, "OrmqrBackward0")


def _check_product(input: Any, tau: Any, other: Any, left: bool) -> None:
    name = "torch.ormqr"
    for tensor, argument in ((input, "input"), (other, "other")):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"{name}: {argument} must have at least 2 dimensions.")
    _need_vectors(tau)
    side = -2 if left else -1
    size = other._array.shape[side]
    if size != input._array.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau._array.shape[-1] != min(size, input._array.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _need_tau(input, tau, name)
    if other._array.ndim != input._array.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other._array.ndim} and input.ndim is equal to {input._array.ndim}"
        )
    need_same_batch(other, input, name, "other")
    for tensor, argument in ((tau, "tau"), (other, "other")):
        if tensor._array.dtype != input._array.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {argument} to have the same dtype, but input has dtype"
                f"{scalar_name(input)} and {argument} has dtype {scalar_name(tensor)}"
            )
    need_kernel(input, "ormqr_cpu")
