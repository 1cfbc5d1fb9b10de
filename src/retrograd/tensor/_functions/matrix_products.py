"""Matrix products under torch's names: few checks in front of one call of `record`, for they are most of its cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray
from ..._dtypes import CPP_NAMES
from ..._modes import current_mode
from ..._ops import matrix_products as la
from ..._ops import shape as s
from ...overrides import takes_old_forms, takes_out
from .._aliasing.views import view_op
from .._base import storage_of
from .._object.layout import geometry, strides
from .._recording.record import record
from .._recording.refusals import kernel, refuse, refused
from .elementwise import _mul
from .matrix_checks import scalar_name
from .shape import contiguous, expand, reshaped, squeeze, swap, t, unsqueeze

NDARRAY = np.ndarray
refused("dot", "bmm", b=kernel("{name}"))
refused("mv", b=kernel("addmv_impl_cpu"))
refused("mm", b=kernel("addmm_impl_cpu_"))


def _same_dtype(a: Any, b: Any) -> None:
    if a._array.dtype != b._array.dtype:
        names = [CPP_NAMES[one._array.dtype.name] for one in (a, b)]
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}")


class _Strides:
    """The strides that the node of `mm` shows, worked out when somebody asks."""

    __slots__ = ("arrays",)

    def __init__(self, x: Any, y: Any) -> None:
        self.arrays = {"self_sym_strides": (x.strides, x.itemsize), "mat2_sym_strides": (y.strides, y.itemsize)}

    def __contains__(self, name: str) -> bool:
        return False  # nothing that recording looks for

    def __getitem__(self, name: str) -> tuple[int, ...]:
        steps, size = self.arrays[name]
        return tuple(step // size for step in steps)


def _mm(a: Any, b: Any) -> Any:
    """Multiply two matrices that have passed the checks."""
    shown: Any = None
    if current_mode().tracks and (a._edge is not None or b._edge is not None):
        x, y = a._array, b._array
        if type(x) is NDARRAY and type(y) is NDARRAY and x.size and y.size:
            shown = _Strides(x, y)
        else:  # NumPy has no strides of empty arrays
            shown = {"self_sym_strides": geometry(a)[0], "mat2_sym_strides": geometry(b)[0]}
    return record(la.matmul, (a, b), {}, "MmBackward0", shown)


@takes_out(lowered="cpu cuda", out_dtype="result")
def mm(input: Any, mat2: Any) -> Any:
    """Multiply two matrices.

    Args:
        input: (n, k)
        mat2: (k, m)

    Example:
        >>> torch.mm(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
        tensor([[11.]])
    """
    x, y = input._array, mat2._array
    if x.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if y.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_mm(input, mat2)
    return _mm(input, mat2)


def check_mm(a: Any, b: Any) -> None:
    """Refuse two matrices that do not fit."""
    x, y = a._array, b._array
    (m, k), (k2, n) = x.shape, y.shape
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})")
    if x.dtype is not y.dtype:
        _same_dtype(a, b)
    if x.dtype.kind == "b" and x.size and y.size:
        refuse("mm", x.dtype)


@takes_out(lowered="cpu cuda")
def bmm(input: Any, mat2: Any) -> Any:
    """Multiply two batches of matrices.

    Args:
        input: (b, n, k)
        mat2: (b, k, m)

    Example:
        >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
        torch.Size([5, 2, 4])
    """
    x, y = input._array, mat2._array
    if x.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if y.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return _bmm(input, mat2)


def _bmm(first: Any, second: Any) -> Any:
    x, y = first._array, second._array
    a, b = x.shape, y.shape
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: "
            f"[{b[0]}, {b[1]}]."
        )
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(first)} but found {scalar_name(second)}")
    if x.dtype.kind == "b" and x.size and y.size:
        refuse("bmm", x.dtype)
    return record(la.matmul, (first, second), {}, "BmmBackward0")


@takes_out(lowered="cuda", out_dtype="result")
def mv(input: Any, vec: Any) -> Any:
    """Multiply a matrix by a vector.

    Args:
        input: (n, k)
        vec: (k)

    Example:
        >>> torch.mv(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
        tensor([21., 43.])
    """
    return _mv(input, vec)


def _mv(a: Any, b: Any) -> Any:
    x, y = a._array, b._array
    if x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}")
    rows, columns = x.shape
    if columns != y.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({y.shape[0]})")
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        first, second = scalar_name(a), scalar_name(b)
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {second}, {first}, and {second}")
    if x.dtype.kind == "b" and x.size and y.size:
        refuse("mv", x.dtype)
    return record(la.matmul, (a, b), {}, "MvBackward0")


@takes_out
def dot(input: Any, tensor: Any) -> Any:
    """Return the sum of the products of two vectors' elements.

    Args:
        input: a vector
        tensor: a vector of the same size

    Example:
        >>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor(11)
    """
    return _dot(input, tensor)


def _dot(a: Any, b: Any, name: str = "DotBackward0") -> Any:
    x, y = a._array, b._array
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_name(a)} and {scalar_name(b)}"
        )
    if x.shape != y.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {_errors.sizes(x.shape)} and src {_errors.sizes(y.shape)} to "
            f"have the same number of elements, but got {x.size} and {y.size} elements respectively"
        )
    if x.dtype.kind == "b":
        refuse("dot", x.dtype)
    return record(la.matmul, (a, b), {}, name)


@takes_out
def vdot(input: Any, other: Any) -> Any:
    """Multiply the conjugate of a vector with another and sum."""
    if input._array.dtype.kind != "c" or input._array.ndim != 1:
        return _dot(input, other, "VdotBackward0")
    return _dot(input.conj(), other)


@takes_out
def outer(input: Any, vec2: Any) -> Any:
    """Return the products of all pairs of two vectors' elements.

    Args:
        input: a vector (n)
        vec2: a vector (m)

    Returns:
        A matrix (n, m).

    Example:
        >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
        tensor([[ 3,  4,  5],
                [ 6,  8, 10]])
    """
    if input._array.ndim != 1 or vec2._array.ndim != 1:
        which, tensor = ("self", input) if input._array.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {tensor._array.ndim}-D")
    return _mul(reshaped(input, (input._array.shape[0], 1)), vec2)


ger = outer


@takes_out(lowered="cpu cuda", out_dtype="result")
def matmul(input: Any, other: Any) -> Any:
    """Multiply matrices, vectors, and batches of matrices, as the operator `@`.

    Args:
        input: (..., n, k), or a vector (k)
        other: (..., k, m), or a vector (k); the dimensions in front broadcast

    Example:
        >>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
        tensor([3, 7])
        >>> (torch.ones(5, 2, 3) @ torch.ones(3, 4)).shape
        torch.Size([5, 2, 4])
    """
    return product(input, other)


def product(a: Any, b: Any) -> Any:
    """Compute a @ b for any ranks."""
    rank_a, rank_b = a._array.ndim, b._array.ndim
    if rank_a == 2:
        if rank_b == 2:
            check_mm(a, b)
            return _mm(a, b)
        if rank_b == 1:
            return _mv(a, b)
    elif rank_a == 1 and rank_b == 1:
        return _dot(a, b)
    if not rank_a or not rank_b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {rank_a}D and {rank_b}D")
    level = isinstance(a._array, LevelArray) or isinstance(b._array, LevelArray)
    if rank_a == 1 and rank_b == 2 and not level:
        row = view_op(a, s.expand_dims, {"axis": 0}, "UnsqueezeBackward0", {"dim": 0})
        check_mm(row, b)
        # torch squeezes in place: nobody has seen what is squeezed, so the result is no view, but was written once
        result = record(s.squeeze, (_mm(row, b),), {"axis": (0,)}, "SqueezeBackward4", {"dim": 0})
        storage_of(result).version = 1
        return result
    if level or not _is_seen(a, b):
        _check_batched(a, b)
        name = "SqueezeBackward4" if rank_a == 1 and rank_b == 2 else "UnsafeViewBackward0"
        return record(la.matmul, (a, b), {}, name)
    return _folded(a, b) if _should_fold(a, b) else _batched(a, b)


# ---- products of batches, by the steps torch takes: they are visible in the graph ----
def _is_seen(a: Any, b: Any) -> bool:
    """Tell whether anybody can see the steps: where they are recorded, or where one will refuse its operands."""
    return a._array.dtype.kind == "b" or (current_mode().tracks and (a._edge is not None or b._edge is not None))


def _should_fold(a: Any, b: Any) -> bool:
    """Tell whether the batch of the larger tensor is folded into its rows, to multiply by one matrix."""
    larger_first = a._array.ndim >= b._array.ndim
    large, small = (a, b) if larger_first else (b, a)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if a._array.ndim == 2:
        return False
    shape, steps = list(large._array.shape), list(strides(large._array))
    if not larger_first:
        shape[-2:], steps[-2:] = reversed(shape[-2:]), reversed(steps[-2:])
    return 0 in shape or all(steps[k] == steps[k + 1] * shape[k + 1] for k in range(len(shape) - 2))


def _unsafe_view(tensor: Any, shape: tuple[int, ...]) -> Any:
    return record(s.reshape, (tensor,), {"shape": shape}, "UnsafeViewBackward0")


def _folded(a: Any, b: Any) -> Any:
    turned = b._array.ndim > a._array.ndim
    large = swap(b, -2, -1, "TransposeBackward0") if turned else a
    small = b if not turned else t(a) if a._array.ndim == 2 else a
    *lead, inner = large._array.shape
    rows = math.prod(lead)
    flat = reshaped(large, (rows, inner))
    if small._array.ndim == 1:
        return _unsafe_view(_mv(flat, small), tuple(lead))
    shape = (*lead, small._array.shape[1])
    check_mm(flat, small)
    result = _unsafe_view(_mm(flat, small), shape)
    return contiguous(swap(result, -2, -1, "TransposeBackward0")) if turned else result


def _batched(a: Any, b: Any) -> Any:
    shape_a, shape_b = tuple(a._array.shape), tuple(b._array.shape)
    vector = len(shape_b) == 1
    if len(shape_a) == 3 and len(shape_b) == 3 and shape_a[0] != shape_b[0]:
        if shape_a[0] == 1 and a.requires_grad:
            return product(squeeze(a, 0), b)
        if shape_b[0] == 1 and b.requires_grad:
            return product(a, squeeze(b, 0))
    lead = shape_a[:-2]
    if lead != shape_b[:-2]:
        try:
            lead = tuple(np.broadcast_shapes(lead, shape_b[:-2]))
        except ValueError:
            raise _errors.broadcast_error(lead, shape_b[:-2]) from None
    count = math.prod(lead)
    rows, inner = (shape_a[-2] if len(shape_a) > 1 else 1), shape_a[-1]
    depth_b, columns = (shape_b[0], 1) if vector else shape_b[-2:]
    left = reshaped(expand(a, (*lead, rows, inner)), (count, rows, inner))
    if vector:
        right = unsqueeze(reshaped(expand(b, (*lead, depth_b)), (count, depth_b)), 2)
    else:
        right = reshaped(expand(b, (*lead, depth_b, columns)), (count, depth_b, columns))
    result = _bmm(left, right)
    shape = (*lead, *shape_a[-2:-1], *(() if vector else (columns,)))
    return _unsafe_view(squeeze(result, -1) if vector else result, shape)


def _check_batched(a: Any, b: Any) -> None:
    shape_a, shape_b = tuple(a._array.shape), tuple(b._array.shape)
    k_a = shape_a[-1]
    k_b = shape_b[-2] if len(shape_b) > 1 else shape_b[-1]
    if k_a != k_b:
        rows = 1
        for n in shape_a[:-1]:
            rows *= n
        columns = shape_b[-1] if len(shape_b) > 1 else 1
        if len(shape_a) >= 3 and len(shape_b) >= 3:
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{shape_b[0]}, {k_a}] but got: "
                f"[{shape_b[0]}, {k_b}]."
            )
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{k_a} and {k_b}x{columns})")
    _same_dtype(a, b)
    lead_a, lead_b = shape_a[:-2], shape_b[:-2]
    for x, y in zip(reversed(lead_a), reversed(lead_b), strict=False):
        if x != y and 1 not in (x, y):
            raise _errors.broadcast_error(lead_a, lead_b)


# ---- a product added to a matrix ----
def weights(beta: Any, alpha: Any, array: Any) -> dict[str, Any]:
    """Return the weights of a sum as torch's kernels read them: cut to integers for integer arrays."""
    if beta == 1 == alpha:
        return {"beta": 1, "alpha": 1}
    kind = array.dtype.kind
    if kind in "iu":
        return {"beta": int(beta), "alpha": int(alpha)}
    if kind != "c" and (isinstance(beta, complex) or isinstance(alpha, complex)):
        raise RuntimeError(f"value cannot be converted to type {CPP_NAMES[array.dtype.name]} without overflow")
    return {"beta": beta, "alpha": alpha}


def check_expands(tensor: Any, shape: tuple[int, ...]) -> None:
    """Refuse a tensor that does not expand to the shape of a product."""
    own = tuple(tensor._array.shape)
    if len(own) > len(shape):
        expand(tensor, tuple(shape))  # which says what is wrong
    for k, (size, have) in enumerate(zip(reversed(shape), reversed(own), strict=False), 1):
        if have not in (1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({have}) at non-singleton "
                f"dimension {len(shape) - k}.  Target sizes: {_errors.sizes(shape)}.  Tensor sizes: "
                f"{_errors.sizes(own)}"
            )


@takes_old_forms(lowered="cpu cuda", out_dtype="result")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a matrix and a product of matrices: beta * input + alpha * mat1 @ mat2.

    Args:
        input: a matrix, or what broadcasts to one
        mat1: (n, k)
        mat2: (k, m)
        beta: a factor of `input`
        alpha: a factor of the product

    Example:
        >>> torch.addmm(torch.ones(2), torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.],
                [4., 5.]])
    """
    bias, x, y = input._array, mat1._array, mat2._array
    dtype = x.dtype
    if x.ndim != 2 or y.ndim != 2 or dtype.kind == "b" or dtype is not y.dtype or dtype is not bias.dtype:
        _check_addmm(input, mat1, mat2)
    (rows, inner), (depth, columns) = x.shape, y.shape
    if inner != depth:
        check_mm(mat1, mat2)
    if bias.shape != (columns,) and bias.shape != (rows, columns):
        check_expands(input, (rows, columns))
    return record(la.addmm, (input, mat1, mat2), weights(beta, alpha, x), "AddmmBackward0")


def _check_addmm(bias: Any, a: Any, b: Any) -> None:
    for name, matrix in (("mat1", a), ("mat2", b)):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix._array.ndim}-D tensor")
    refuse("mm", a._array.dtype)
    other = bias if a._array.dtype == b._array.dtype else a
    if other._array.dtype != b._array.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(other)} and {scalar_name(b)}")
