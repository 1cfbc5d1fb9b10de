"""Linear systems, inverses and determinants under torch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray, is_meta, raw_leaf
from ..._core.numpy_namespace import is_half, raw_namespace
from ..._ops import determinants
from ..._ops import solving as ops
from ..._ops.matrices import LinAlgError
from ..._warnings import warn_once
from ...overrides import overridable, takes_out
from .. import _base
from .._object.return_types import make
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .cholesky import SINGULAR, need_factor
from .elementwise import log, where
from .matrix_checks import need_float, need_kernel, need_matrix, need_square, need_tensor, raise_for, scalar_name
from .shape import movedim, reshape

solve_ex_result = make("linalg_solve_ex", "result", "info")
inv_ex_result = make("linalg_inv_ex", "inverse", "info")
linalg_slogdet_result = make("linalg_slogdet", "sign", "logabsdet")
slogdet_result = make("slogdet", "sign", "logabsdet")
triangular_solve_result = make("triangular_solve", "solution", "cloned_coefficient")
NO_SOLUTION = "The solver failed because the input matrix is singular."


def _info(matrices: Any, result: Any) -> Any:
    """Return where elimination met a zero. It did not where the result is finite, which is quicker to see."""
    lead = tuple(matrices._array.shape[:-2])
    raw = raw_leaf(result._array)
    if is_meta(raw) or (np.isfinite(raw).all() and not isinstance(matrices._array, LevelArray)):
        return _base.wrap(raw_namespace(raw).zeros(shape=lead, dtype=np.int32))
    return record(ops.singular_at, (matrices,), {})


def _failed(result: Any) -> bool:
    """Tell whether a system may have been singular: then something in its result is not finite."""
    raw = raw_leaf(result._array)
    return not is_meta(raw) and not np.isfinite(raw).all()


# ---- systems ----
def need_fitting(a: Any, b: Any, left: bool, name: str, vector: bool = False) -> None:
    """Require a right side that fits the matrices, and batches that broadcast."""
    (m, n), shape = a._array.shape[-2:], tuple(b._array.shape)
    rows, columns = (shape[-1], 1) if vector else shape[-2:]
    if (n if left else m) != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({m}x{n} and {rows}x{columns})"
        )
    lead = shape[:-1] if vector else shape[:-2]
    own = tuple(a._array.shape[:-2])
    if lead != own:
        for x, y in zip(reversed(lead), reversed(own), strict=False):
            if x != y and 1 not in (x, y):
                raise _errors.broadcast_error(lead, own)


def _solved(a: Any, b: Any, left: bool) -> Any:
    name = "linalg.solve"
    need_float(a, name)
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {scalar_name(a)} and B of type "
            f"{scalar_name(b)} instead"
        )
    need_square(a, name)
    vector = b._array.ndim == 1 or (
        b._array.ndim == a._array.ndim - 1 and tuple(b._array.shape) == tuple(a._array.shape[:-1])
    )
    if not vector:
        need_matrix(b, name, "B")
    need_fitting(a, b, left, name, vector)
    need_kernel(a, "lu_cpu")
    return record(ops.solve, (a, b), {"left": bool(left), "vector": vector}, "LinalgSolveExBackward0")


@takes_out(forms="", raised="cpu")
def solve(A: Any, B: Any, *, left: bool = True) -> Any:  # noqa: N803 - torch's names
    """Solve A @ X = B for X.

    Args:
        A: square matrices (..., n, n)
        B: (..., n, k), or vectors (..., n)
        left: False solves X @ A = B

    Raises:
        torch.linalg.LinAlgError: a matrix is singular

    Example:
        >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    # not by the general check, which knows only `torch.solve`, another function
    need_tensor(A, "linalg_solve", "A")
    need_tensor(B, "linalg_solve", "B", 2)
    result = _solved(A, B, left)
    if _failed(result):
        raise_for(record(ops.singular_at, (A,), {}), "torch.linalg.solve", LinAlgError, NO_SOLUTION)
    return result


@takes_out(raised="cpu")
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:  # noqa: N803 - torch's names
    """Solve systems, and tell which of the matrices are singular."""
    result = _solved(A, B, left)
    info = _info(A, result)
    if check_errors:
        raise_for(info, "torch.linalg.solve_ex", LinAlgError, NO_SOLUTION)
    return solve_ex_result(result, info)


@takes_out
def solve_triangular(input: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:  # noqa: N803
    """Solve A @ X = B for X, with triangular matrices A.

    Args:
        input: triangular matrices A (..., n, n); the other triangle is not read
        B: (..., n, k)
        upper: whether they are upper triangles
        left: False solves X @ A = B
        unitriangular: take the diagonal to be 1

    Example:
        >>> torch.linalg.solve_triangular(torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([[1.0], [3.0]]), upper=False)
        tensor([[1.],
                [1.]])
    """
    name = "linalg.solve_triangular"
    need_square(input, name)
    need_matrix(B, name, "B")
    need_fitting(input, B, left, name)
    need_kernel(input, "triangular_solve_cpu")
    params = {"upper": bool(upper), "left": bool(left), "unitriangular": bool(unitriangular)}
    return record(ops.solve_triangular, (input, B), params, "LinalgSolveTriangularBackward0")


@takes_out(raised="cpu")
def triangular_solve(
    input: Any,
    A: Any,  # noqa: N803 - torch's name
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """Solve A @ x = input, or A^T @ x = input, with one triangle of A; return x and A."""
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future "
        "PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one "
        "of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        "torch.linalg.solve_triangular(A, B).",
    )
    for letter, tensor in (("b", input), ("A", A)):
        if tensor._array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {letter} to have at least 2 dimensions, but it has "
                f"{tensor._array.ndim} dimensions instead"
            )
    need_factor(input, A, "triangular_solve")
    matrices = A.mT if transpose else A
    solution = solve_triangular(matrices, input, upper=upper != transpose, unitriangular=unitriangular)
    lead = tuple(solution._array.shape[:-2])
    return triangular_solve_result(solution, A.expand(*lead, *A._array.shape[-2:]).clone())


# ---- inverses ----
def _need_precision(tensor: Any, name: str) -> None:
    """Refuse half precision."""
    if is_half(tensor._array.dtype):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(tensor)}")


def _inverse(tensor: Any) -> Any:
    need_square(tensor, "linalg.inv")
    need_float(tensor, "linalg.inv")
    _need_precision(tensor, "linalg.inv")
    return record(ops.inv, (tensor,), {}, "LinalgInvExBackward0")


@takes_out(raised="cpu", out_dtype="result")
def inv(A: Any) -> Any:  # noqa: N803 - torch's name
    """Return the inverse of square matrices.

    Args:
        A: (..., n, n)

    Raises:
        torch.linalg.LinAlgError: a matrix is singular

    Example:
        >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return checked_inverse(A, "linalg.inv")


def checked_inverse(matrices: Any, name: str) -> Any:
    """Invert matrices; a singular one is an error of the function `name`."""
    result = _inverse(matrices)
    if _failed(result):
        raise_for(record(ops.singular_at, (matrices,), {}), name, LinAlgError, SINGULAR)
    return result


@takes_out(raised="cpu", out_dtype="result")
def inverse(input: Any) -> Any:
    """Return the inverse of square matrices: `torch.linalg.inv`.

    Args:
        input: (..., n, n)

    Example:
        >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return checked_inverse(input, "linalg.inv")


@takes_out(raised="cpu")
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:  # noqa: N803 - torch's name
    """Invert matrices, and tell which of them are singular."""
    result = _inverse(A)
    info = _info(A, result)
    if check_errors:
        raise_for(info, "linalg.inv_ex", LinAlgError, SINGULAR)
    return inv_ex_result(result, info)


# ---- determinants ----
@takes_out(out_dtype="result")
def linalg_det(A: Any) -> Any:  # noqa: N803 - torch's name
    """Return the determinant of square matrices.

    Args:
        A: (..., n, n)

    Example:
        >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(8.)
    """
    need_square(A, "linalg.det")
    need_float(A, "linalg.det")
    need_kernel(A, "lu_cpu")
    return record(determinants.det, (A,), {}, "LinalgDetBackward0")


@overridable
def det(input: Any) -> Any:
    """Compute determinants."""
    return linalg_det(input)


def _signs_and_sizes(tensor: Any, name: str) -> Any:
    need_square(tensor, name)
    need_float(tensor, name)
    _need_precision(tensor, name)
    return record_keeping_outputs(determinants.slogdet, (tensor,), {}, "LinalgSlogdetBackward0", ("sign",))


@takes_out
def linalg_slogdet(A: Any) -> Any:  # noqa: N803 - torch's name
    """Return the sign of the determinant of square matrices, and the logarithm of its absolute value.

    Args:
        A: (..., n, n)

    Example:
        >>> torch.linalg.slogdet(torch.tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
        tensor(-1.)
    """
    return linalg_slogdet_result(*_signs_and_sizes(A, "linalg.slogdet"))


@takes_out
def slogdet(input: Any) -> Any:
    """Compute the signs of determinants and the logarithms of their sizes."""
    return slogdet_result(*_signs_and_sizes(input, "linalg.slogdet"))


@overridable
def logdet(input: Any) -> Any:
    """Compute the logarithms of determinants; NaN for negative ones."""
    sign, size = _signs_and_sizes(input, "logdet")
    if input._array.dtype.kind == "c":
        return log(sign) + size
    return where(sign == -1, math.nan, size)


# ---- tensors as linear maps ----
@takes_out(raised="cpu")
def tensorinv(A: Any, ind: int = 2) -> Any:  # noqa: N803 - torch's name
    """Invert a tensor as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = tuple(A._array.shape[:ind]), tuple(A._array.shape[ind:])
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(last)} != {math.prod(first)}"
        )
    return reshape(checked_inverse(reshape(A, (math.prod(first), math.prod(last))), "inv"), (*last, *first))


@takes_out(raised="cpu")
def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:  # noqa: N803 - torch's names
    """Solve tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        count = A._array.ndim
        A = movedim(A, list(dims), list(range(count - len(dims), count)))  # noqa: N806
    rank = B._array.ndim
    first, last = math.prod(A._array.shape[:rank]), tuple(A._array.shape[rank:])
    if first != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(last)} != {first}"
        )
    return reshape(solve(reshape(A, (first, first)), reshape(B, (B._array.size,))), last)
