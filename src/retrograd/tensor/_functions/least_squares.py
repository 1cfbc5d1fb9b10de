"""Pseudo-inverses, ranks and least squares under torch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import least_squares as ops
from ..._ops.matrices import LinAlgError
from ...overrides import overridable, takes_out
from .. import _base
from .._object.return_types import make
from .._recording.record import record
from .creation import zeros
from .elementwise import abs as size_of
from .elementwise import square, where
from .matrix_checks import need_square, need_tensor, raise_for, scalar_name
from .matrix_products import matmul
from .reduce import sum as summed
from .shape import flatten, squeeze, unsqueeze

lstsq_result = make("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
NOT_FULL_RANK = (
    "The least squares solution could not be computed because the input matrix does not have full rank "
    "(error code: {})."
)


# ---- limits below which singular values count as zero ----
def _default_limit(tensor: Any) -> float:
    rows, columns = tensor._array.shape[-2:]
    return float(np.finfo(tensor._array.dtype).eps) * max(int(rows), int(columns))


def _limit_array(limit: Any, name: str, argument: str) -> Any:
    if not isinstance(limit, _base.Tensor):
        return np.asarray(limit, np.float64)
    if limit._array.dtype.kind == "c":
        raise RuntimeError(f"{name}: {argument} tensor of complex type is not supported. Got {scalar_name(limit)}")
    return limit


def _limits(tensor: Any, atol: Any, rtol: Any, name: str) -> tuple[Any, Any]:
    """Return both limits; the relative one is used only where no absolute one is given."""
    if rtol is None:
        rtol = _default_limit(tensor)
        if isinstance(atol, _base.Tensor) and atol._array.dtype.kind != "c":
            rtol = where(atol > 0, 0.0, rtol)
        elif not isinstance(atol, _base.Tensor) and atol is not None and atol > 0:
            rtol = 0.0
    return _limit_array(0.0 if atol is None else atol, name, "atol"), _limit_array(rtol, name, "rtol")


def _as_matrices(tensor: Any, limits: tuple[Any, Any]) -> Any:
    """Broadcast matrices over limits that have a batch where the matrices have none."""
    lead = np.broadcast_shapes(*[tuple(one.shape) for one in limits], tuple(tensor._array.shape[:-2]))
    return tensor if lead == tuple(tensor._array.shape[:-2]) else tensor.expand(*lead, *tensor._array.shape[-2:])


@takes_out(raised="cpu")
def pinv(input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """Return the pseudoinverse of matrices.

    Args:
        input: (..., m, n)
        rcond: the old name of `rtol`
        hermitian: whether the matrices are symmetric or Hermitian
        atol: singular values below it count as 0
        rtol: the same, relative to the largest

    Example:
        >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]])
    """
    return _pinv(input, atol, rtol if rcond is None else rcond, hermitian)


def _pinv(tensor: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    array = tensor._array
    if array.ndim < 2 or array.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        shape = ", ".join(str(n) for n in array.shape)
        raise RuntimeError(
            f"linalg.pinv({scalar_name(tensor)}{{[{shape}]}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )
    if hermitian:
        need_square(tensor, "linalg.eigh")
    limits = _limits(tensor, atol, rtol, "torch.linalg.pinv")
    args = (_as_matrices(tensor, limits), *limits)
    return record(ops.pinv, args, {"hermitian": bool(hermitian)}, "LinalgPinvBackward0")


@overridable(raised="cpu")
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Compute pseudo-inverses."""
    return _pinv(input, None, rcond, False)


@takes_out(raised="cpu")
def matrix_rank(input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """Return the number of singular values that are not 0.

    Args:
        input: (..., m, n)
        tol: the old name of `atol`
        hermitian: whether the matrices are symmetric or Hermitian
        atol: singular values below it count as 0
        rtol: the same, relative to the largest

    Example:
        >>> torch.linalg.matrix_rank(torch.ones(3, 3))
        tensor(1)
    """
    if input._array.dtype.kind in "biu" or input._array.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if input._array.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if hermitian:
        need_square(input, "linalg.eigh")
    if tol is not None:
        atol, rtol = tol, 0.0
    limits = _limits(input, atol, rtol, "torch.linalg.matrix_rank")
    return record(ops.matrix_rank, (input, *limits), {"hermitian": bool(hermitian)})


# ---- least squares ----
@takes_out(forms="", raised="cpu")
def lstsq(input: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Find X for which A @ X is as close to B as possible.

    Args:
        input: A, (..., m, n)
        b: (..., m, k)
        rcond: which singular values count as 0
        driver: the name of LAPACK's method

    Returns:
        The solution, the residuals, the rank and the singular values.

    Example:
        >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution.round(decimals=3)
        tensor([[1.],
                [2.]])
    """
    # not by the general check, which knows only `torch.lstsq`, another function
    need_tensor(input, "linalg_lstsq", "input")
    need_tensor(b, "linalg_lstsq", "b", 2)
    vector = _check_lstsq(input, b, driver)
    right = unsqueeze(b, -1) if vector else b
    limit = _default_limit(input) if rcond is None else rcond
    solution, rank, values = record(ops.lstsq, (input, right), {"rcond": limit}, "LinalgLstsqBackward0")
    values._edge = None  # torch does not differentiate it
    m, n = input._array.shape[-2:]
    driver = "gelsy" if driver is None else driver
    if driver == "gels":
        deficient = raw_leaf(rank._array) < min(m, n)
        raise_for(deficient * min(m, n), "torch.linalg.lstsq", LinAlgError, NOT_FULL_RANK)
    residuals = _residuals(input, right, solution, rank, driver)
    none = zeros(0, dtype=_base.dtype_of(values), device=input.device)
    return lstsq_result(
        squeeze(solution, -1) if vector else solution,
        residuals,
        zeros(0, dtype=_dtypes.int64, device=input.device) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else none,
    )


def _check_lstsq(a: Any, b: Any, driver: str | None) -> bool:
    """Refuse what torch refuses; tell whether `b` holds vectors."""
    name = "torch.linalg.lstsq"
    if a._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b._array.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {scalar_name(a)} and "
            f"other's dtype {scalar_name(b)}"
        )
    gap = a._array.ndim - b._array.ndim
    if gap not in (0, 1):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = gap == 1 and tuple(b._array.shape) == tuple(a._array.shape[:-1])
    rows = b._array.shape[-1] if vector else b._array.shape[-2] if b._array.ndim > 1 else b._array.shape[0]
    if rows != a._array.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-{1 if vector else 2})")
    lead, other = tuple(a._array.shape[:-2]), tuple(b._array.shape[: a._array.ndim - 2])
    try:
        np.broadcast_shapes(lead, other)
    except ValueError:
        raise _errors.broadcast_error(lead, other) from None
    if a._array.dtype.kind in "biu" or a._array.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    return vector


def _residuals(a: Any, b: Any, solution: Any, rank: Any, driver: str) -> Any:
    """Return squared distances of full-rank systems with more rows than columns, else nothing, as LAPACK does."""
    m, n = a._array.shape[-2:]
    ranks = raw_leaf(rank._array)
    full = is_meta(ranks) or bool((ranks == n).all())
    if m <= n or driver == "gelsy" or not full:
        return size_of(flatten(solution)[:0])  # it requires grad where the solution does
    return summed(square(size_of(b - matmul(a, solution))), -2)
