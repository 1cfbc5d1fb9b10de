"""Cholesky factors under torch's names."""

from __future__ import annotations

from typing import Any

from ..._core.arrays import raw_leaf
from ..._ops import cholesky as ops
from ..._ops.matrices import LinAlgError
from ..._warnings import warn_once
from ...overrides import takes_out
from .._object.return_types import make
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .matrix_checks import need_float, need_kernel, need_square, need_tensor, raise_for, scalar_name

cholesky_ex_result = make("linalg_cholesky_ex", "L", "info")
SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order {} "
    "is not positive-definite)."
)


def _factors(input: Any, upper: bool, name: str, shown: str) -> Any:
    need_kernel(input, "cholesky_cpu")
    return record_keeping_outputs(ops.cholesky, (input,), {"upper": bool(upper)}, name, (shown,))


def _checked(input: Any, upper: bool, check_errors: bool, name: str) -> Any:
    need_square(input, "linalg.cholesky")
    need_float(input, "linalg.cholesky")
    factor, info = _factors(input, upper, "LinalgCholeskyExBackward0", "L")
    if check_errors:
        raise_for(info, name, LinAlgError, NOT_POSITIVE)
    return factor, info


@takes_out(raised="cpu", out_dtype="result")
def linalg_cholesky(input: Any, *, upper: bool = False) -> Any:
    """Factor positive definite matrices into L @ L.mH, with lower triangles L.

    Args:
        input: symmetric or Hermitian positive definite matrices (..., n, n); one triangle is read
        upper: return the upper triangle L.mH

    Raises:
        torch.linalg.LinAlgError: a matrix is not positive definite

    Example:
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    return _checked(input, upper, True, "linalg.cholesky")[0]


@takes_out(raised="cpu")
def linalg_cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Factor matrices, and tell where one is not positive-definite."""
    return cholesky_ex_result(*_checked(input, upper, check_errors, "linalg.cholesky_ex"))


@takes_out(raised="cpu", out_dtype="result")
def cholesky(input: Any, upper: bool = False) -> Any:
    """Factor positive-definite matrices."""
    need_tensor(input, "cholesky", "input")
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
        "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, "
        "upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will produce equivalent "
        "results for all valid (symmetric positive definite) inputs."
    )
    if not input._array.size and input._array.ndim >= 2:
        return input.clone()
    need_square(input, "cholesky")
    factor, info = _factors(input, upper, "CholeskyBackward0", "result")
    raise_for(info, "cholesky", LinAlgError, NOT_POSITIVE)
    return factor


@takes_out(raised="cpu")
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Any:
    """Solve a @ x = input for matrices given by their Cholesky factors."""
    for tensor, letter in ((input, "b"), (input2, "u")):
        if tensor._array.ndim < 2:
            raise RuntimeError(
                f"{letter} should have at least 2 dimensions, but has {tensor._array.ndim} dimensions instead"
            )
    need_factor(input, input2, "cholesky_solve")
    need_kernel(input2, "cholesky_solve_cpu")
    return record(ops.cholesky_solve, (input, input2), {"upper": bool(upper)}, "CholeskySolveBackward0")


def need_factor(b: Any, a: Any, name: str) -> None:
    """Require a right side that fits a square matrix."""
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(b)} and A of type "
            f"{scalar_name(a)} instead."
        )
    need_square(a, "")
    rows, columns = a._array.shape[-2:]
    if columns != b._array.shape[-2]:
        height, width = b._array.shape[-2:]
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {columns} but each b matrix is {height} "
            f"by {width}"
        )


@takes_out(raised="cpu")
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """Invert the matrices of which Cholesky factors are given."""
    need_square(input, "cholesky_inverse")
    need_kernel(input, "cholesky_inverse_out_cpu")
    zero = raw_leaf(input._array).diagonal(0, -2, -1) == 0
    raise_for((zero.argmax(-1) + 1) * zero.any(-1) if zero.size else zero, "cholesky_inverse", LinAlgError, SINGULAR)
    return record(ops.cholesky_inverse, (input,), {"upper": bool(upper)}, "CholeskyInverseBackward0")
