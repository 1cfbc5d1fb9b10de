"""LU and LDL decompositions under torch's names."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import lu as ops
from ..._warnings import warn_once
from ...overrides import overridable, takes_out
from .._object.return_types import make
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .cholesky import need_factor
from .creation import zeros
from .matrix_checks import need_float, need_kernel, need_matrix, need_square, need_tensor, raise_for, scalar_name

lu_result = make("linalg_lu", "P", "L", "U")
lu_factor_result = make("linalg_lu_factor", "LU", "pivots")
lu_factor_ex_result = make("linalg_lu_factor_ex", "LU", "pivots", "info")
lu_with_info_result = make("_lu_with_info", "LU", "pivots", "info")
lu_unpack_result = make("lu_unpack", "P", "L", "U")
ldl_factor_result = make("linalg_ldl_factor", "LD", "pivots")
ldl_factor_ex_result = make("linalg_ldl_factor_ex", "LD", "pivots", "info")
ZERO = (
    "U[{},{}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def _check(tensor: Any, name: str, pivot: bool) -> None:
    if tensor._array.ndim < 2:
        shape = _errors.sizes(tensor._array.shape)
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {shape} instead")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    need_kernel(tensor, "lu_cpu")


def _factors(tensor: Any, pivot: bool) -> Any:
    _check(tensor, "torch.lu_factor", pivot)
    return record_keeping_outputs(ops.lu_factor, (tensor,), {}, "LinalgLuFactorExBackward0", ("LU", "pivots"))


@takes_out
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:  # noqa: N803 - torch's name
    """Factor matrices into a permutation P, a lower triangle L and an upper triangle U."""
    _check(A, "linalg.lu", pivot)
    low, high, p = record_keeping_outputs(ops.lu, (A,), {}, "LinalgLuBackward0", ("L", "U", "P"), constant=2)
    return lu_result(p, low, high)


@takes_out
def linalg_lu_factor(A: Any, *, pivot: bool = True) -> Any:  # noqa: N803 - torch's name
    """Factor matrices into L and U, packed into one matrix, and the exchanges of rows."""
    packed, pivots, info = _factors(A, pivot)
    raise_for(info, "torch.linalg.lu_factor", RuntimeError, ZERO)
    return lu_factor_result(packed, pivots)


@takes_out
def linalg_lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:  # noqa: N803 - torch's name
    """Factor matrices like `lu_factor`, and tell where U has a zero on its diagonal."""
    found = _factors(A, pivot)
    if check_errors:
        raise_for(found[2], "torch.linalg.lu_factor_ex", RuntimeError, ZERO)
    return lu_factor_ex_result(*found)


@overridable
def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:  # noqa: N803 - torch's name
    """Factor matrices into L and U, packed into one matrix, and the exchanges of rows."""
    need_tensor(A, "_lu_with_info", "input")
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a "
        "future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\n"
        "should be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    found = _factors(A, pivot)
    result = lu_with_info_result(*found) if get_infos else (found[0], found[1])
    if out is None:
        return result
    for target, part in zip(out, result, strict=True):  # torch copies into any dtype here
        target.resize_(part.shape).copy_(part)
    return out


@takes_out
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:  # noqa: N803
    """Take P, L and U out of what `lu_factor` returns; what is not wanted is empty."""
    if LU_data._array.ndim < 2:
        shape = _errors.sizes(LU_data._array.shape)
        raise RuntimeError(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {shape} instead")
    if unpack_pivots:
        _check_pivots(LU_data, LU_pivots)
    if unpack_data and unpack_pivots:
        return lu_unpack_result(*_unpacked(LU_data, LU_pivots))
    empty = [zeros(0, dtype=LU_data.dtype, device=LU_data.device) for _ in range(3)]
    if unpack_data:
        none = zeros(*LU_data.shape[:-2], 0, dtype=LU_pivots.dtype, device=LU_data.device)
        return lu_unpack_result(empty[0], *_unpacked(LU_data, none)[1:])
    if unpack_pivots:
        return lu_unpack_result(_unpacked(LU_data.detach(), LU_pivots)[0], *empty[1:])
    return lu_unpack_result(*empty)


def _unpacked(packed: Any, pivots: Any) -> Any:
    low, high, p = record_keeping_outputs(ops.lu_unpack, (packed, pivots), {}, "LuUnpackBackward0", (), constant=2)
    return p, low, high


def _check_pivots(packed: Any, pivots: Any) -> None:
    if pivots._array.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function "
            "is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    numbers = raw_leaf(pivots._array)
    if numbers.size and not is_meta(numbers) and (numbers.min() < 1 or numbers.max() > packed._array.shape[-2]):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
            "lu_factor?"
        )


@takes_out(raised="cpu")
def linalg_lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:  # noqa: N803
    """Solve a @ x = B, or with the adjoint or on the other side, for matrices that `lu_factor` took apart."""
    need_float(LU, "torch.linalg.lu_solve")
    if LU._array.dtype != B._array.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {scalar_name(LU)} and B of "
            f"type {scalar_name(B)} instead"
        )
    if pivots._array.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    need_square(LU, "torch.linalg.lu_solve")
    _check_shapes(LU, pivots, B, left)
    need_kernel(LU, "linalg.lu_solve_cpu")
    params = {"left": bool(left), "adjoint_": bool(adjoint)}
    return record(ops.lu_solve, (LU, pivots, B), params, "LinalgLuSolveBackward0")


def _check_shapes(packed: Any, pivots: Any, b: Any, left: bool) -> None:
    name = "linalg.lu_solve"
    need_matrix(b, name, "B")
    (m, n), (rows, columns) = packed._array.shape[-2:], b._array.shape[-2:]
    if m != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({m}x{n} and {rows}x{columns})"
        )
    if pivots._array.ndim and pivots._array.shape[-1] != n:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if tuple(pivots._array.shape) != tuple(packed._array.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{_errors.sizes(pivots._array.shape)} instead"
        )


@takes_out(raised="cpu")
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:  # noqa: N803 - torch's names
    """Solve a @ x = input for matrices that `lu_factor` took apart."""
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\n"
        "Note that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be "
        "replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return linalg_lu_solve(LU_data, LU_pivots, input)


# ---- LDL ----
def _ldl(tensor: Any, hermitian: bool, name: str | None) -> Any:
    need_square(tensor, "torch.linalg.ldl_factor_ex")
    need_float(tensor, "torch.linalg.ldl_factor_ex")
    need_kernel(tensor, "ldl_factor_kernel_cpu")
    found = record(ops.ldl_factor, (tensor,), {"hermitian": bool(hermitian)}, "NotImplemented")
    if name is not None:
        raise_for(found[2], name, RuntimeError, "Unknown error code: {}.")
    return found


@takes_out
def linalg_ldl_factor(input: Any, *, hermitian: bool = False) -> Any:
    """Factor symmetric, or Hermitian, matrices into L @ D @ L^T, packed into one matrix."""
    return ldl_factor_result(*_ldl(input, hermitian, "torch.linalg.ldl_factor")[:2])


@takes_out
def linalg_ldl_factor_ex(input: Any, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Factor matrices like `ldl_factor`, and tell where D has a zero on its diagonal."""
    return ldl_factor_ex_result(*_ldl(input, hermitian, "torch.linalg.ldl_factor_ex" if check_errors else None))


@takes_out
def linalg_ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:  # noqa: N803 - torch's names
    """Solve a @ x = B for matrices that `ldl_factor` took apart."""
    name = "torch.linalg.ldl_solve"
    need_square(LD, name)
    need_float(LD, name)
    if B._array.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    need_factor(B, LD, name)
    if tuple(pivots._array.shape) != tuple(LD._array.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{_errors.sizes(pivots._array.shape)} instead"
        )
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots)}")
    need_kernel(LD, "ldl_solve_kernel_cpu")
    return record(ops.ldl_solve, (LD, pivots, B), {"hermitian": bool(hermitian)}, "NotImplemented")
