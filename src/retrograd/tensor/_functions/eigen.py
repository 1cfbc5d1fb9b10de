"""Eigenvalues and eigenvectors under torch's names."""

from __future__ import annotations

from typing import Any

from ..._ops import eigen as ops
from ...overrides import takes_out
from .._object.return_types import make
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .matrix_checks import is_differentiated, need_kernel, need_square, scalar_name

FIELDS = ("eigenvalues", "eigenvectors")
eig_result = make("linalg_eig", "eigenvalues", "eigenvectors")
eigh_result = make("linalg_eigh", "eigenvalues", "eigenvectors")


def _check(input: Any, name: str) -> None:
    need_square(input, name)
    if input._array.dtype.kind in "biu":
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(input)}")
    need_kernel(input, "linalg_eig_out_cpu")


@takes_out(raised="cpu")
def linalg_eig(input: Any) -> Any:
    """Return the eigenvalues of square matrices, complex and in no order, and eigenvectors in columns.

    Args:
        input: (..., n, n)

    Example:
        >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.abs()
        tensor([1., 1.])
    """
    _check(input, "linalg.eig")
    return eig_result(*record_keeping_outputs(ops.eig, (input,), {}, "LinalgEigBackward0", FIELDS))


@takes_out(raised="cpu")
def linalg_eigvals(input: Any) -> Any:
    """Return eigenvalues of square matrices."""
    _check(input, "linalg.eigvals")
    if is_differentiated(input):
        return linalg_eig(input)[0]
    return record(ops.eigvals, (input,), {})


def _triangle(input: Any, letter: str) -> dict[str, str]:
    need_square(input, "linalg.eigh")
    upper = letter.upper()
    if upper not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {letter}")
    need_kernel(input, "linalg_eigh_cpu")
    return {"uplo": upper}


@takes_out(raised="cpu")
def linalg_eigh(input: Any, UPLO: str = "L") -> Any:  # noqa: N803 - torch's name
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order, and eigenvectors in columns.

    Args:
        input: (..., n, n)
        UPLO: "L" reads the lower triangle, "U" the upper one

    Example:
        >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        tensor([1., 3.])
    """
    params = _triangle(input, UPLO)
    return eigh_result(*record_keeping_outputs(ops.eigh, (input,), params, "LinalgEighBackward0", FIELDS))


@takes_out(raised="cpu", out_dtype="result")
def linalg_eigvalsh(input: Any, UPLO: str = "L") -> Any:  # noqa: N803 - torch's name
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Args:
        input: (..., n, n)
        UPLO: "L" reads the lower triangle, "U" the upper one

    Example:
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    params = _triangle(input, UPLO)
    if is_differentiated(input):
        return linalg_eigh(input, UPLO)[0]
    return record(ops.eigvalsh, (input,), params)
