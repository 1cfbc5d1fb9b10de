"""Matrix products under torch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _errors
from .._core.arrays import LevelArray
from .._ops import linalg as la
from .._ops import shape as s
from ..overrides import overridable, takes_out
from . import _base
from ._layout import geometry, strides
from ._pointwise import _mul
from ._record import record
from ._refusals import refuse
from ._shaping import contiguous, expand, reshape, squeeze, swap, t, unsqueeze


def _check_dtypes(a: Any, b: Any, name: str = "") -> None:
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c_name(a)} != {_c_name(b)}")


_C_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def _c_name(tensor: Any) -> str:
    return _C_NAMES[tensor._array.dtype.name]


def _product(a: Any, b: Any, name: str) -> Any:
    if a._array.dtype.kind == "b" and (name == "DotBackward0" or (a._array.size and b._array.size)):
        refuse({"MmBackward0": "mm", "MvBackward0": "mv", "DotBackward0": "dot"}.get(name, "bmm"), a._array.dtype)
    shown = {"self_sym_strides": geometry(a)[0], "mat2_sym_strides": geometry(b)[0]}
    return record(la.matmul, (a, b), {}, name, shown)


@takes_out
def mm(input: Any, mat2: Any) -> Any:
    """Multiply two matrices."""
    if input._array.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2._array.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_mm(input, mat2)
    return _product(input, mat2, "MmBackward0")


def _check_mm(a: Any, b: Any) -> None:
    (m, k), (k2, n) = a._array.shape, b._array.shape
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})")
    _check_dtypes(a, b)


@takes_out
def bmm(input: Any, mat2: Any) -> Any:
    """Multiply two batches of matrices."""
    if input._array.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if mat2._array.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    _check_bmm(input, mat2)
    return _product(input, mat2, "BmmBackward0")


def _check_bmm(first: Any, second: Any) -> None:
    a, b = first._array.shape, second._array.shape
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: "
            f"[{b[0]}, {b[1]}]."
        )
    _check_dtypes(first, second)


@overridable
def mv(input: Any, vec: Any) -> Any:
    """Multiply a matrix and a vector."""
    return _mv(input, vec)


def _mv(a: Any, b: Any) -> Any:
    if a._array.ndim != 2 or b._array.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a._array.ndim}, {b._array.ndim}")
    if a._array.shape[1] != b._array.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a._array.shape[0]}), mat ({a._array.shape[0]}x{a._array.shape[1]}), vec "
            f"({b._array.shape[0]})"
        )
    return _product(a, b, "MvBackward0")


@overridable
def dot(input: Any, tensor: Any) -> Any:
    """Multiply two vectors and sum."""
    return _dot(input, tensor)


def _dot(a: Any, b: Any) -> Any:
    if a._array.ndim != 1 or b._array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a._array.ndim}D and {b._array.ndim}D tensors")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {_scalar(a)} and {_scalar(b)}")
    if a._array.shape != b._array.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {_errors.sizes(a._array.shape)} and src "
            f"{_errors.sizes(b._array.shape)} to have the same number of elements, but got {a._array.size} and "
            f"{b._array.size} elements respectively"
        )
    return _product(a, b, "DotBackward0")


def _scalar(tensor: Any) -> str:
    return _base.dtype_of(tensor)._scalar_name


@overridable
def outer(input: Any, vec2: Any) -> Any:
    """Multiply every element of a vector with every element of another."""
    if input._array.ndim != 1 or vec2._array.ndim != 1:
        which, tensor = ("self", input) if input._array.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {tensor._array.ndim}-D")
    return _mul(reshape(input, input._array.shape[0], 1), vec2)


@takes_out
def matmul(input: Any, other: Any) -> Any:
    """Multiply vectors, matrices or batches of matrices."""
    return product(input, other)


def product(a: Any, b: Any) -> Any:
    """Compute a @ b for any ranks."""
    rank_a, rank_b = a._array.ndim, b._array.ndim
    if not rank_a or not rank_b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {rank_a}D and {rank_b}D")
    if rank_a == 1 and rank_b == 1:
        return _dot(a, b)
    if rank_a == 2 and rank_b == 1:
        return _mv(a, b)
    if rank_a == 2 and rank_b == 2:
        _check_mm(a, b)
        return _product(a, b, "MmBackward0")
    if isinstance(a._array, LevelArray) or isinstance(b._array, LevelArray):
        _check_batched(a, b)
        return _product(a, b, "SqueezeBackward4" if rank_a == 1 and rank_b == 2 else "UnsafeViewBackward0")
    if rank_a == 1 and rank_b == 2:
        row = unsqueeze(a, 0)
        _check_mm(row, b)
        return _product(row, b, "MmBackward0").squeeze_(0)
    return _folded(a, b) if _should_fold(a, b) else _batched(a, b)


# ---- products of batches, by the steps torch takes: they are visible in the graph ----
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
    flat = reshape(large, rows, inner)
    if small._array.ndim == 1:
        return _unsafe_view(_mv(flat, small), tuple(lead))
    shape = (*lead, small._array.shape[1])
    _check_mm(flat, small)
    result = _unsafe_view(_product(flat, small, "MmBackward0"), shape)
    return contiguous(swap(result, -2, -1, "TransposeBackward0")) if turned else result


def _batched(a: Any, b: Any) -> Any:
    shape_a, shape_b = tuple(a._array.shape), tuple(b._array.shape)
    vector = len(shape_b) == 1
    if len(shape_a) == 3 and len(shape_b) == 3 and shape_a[0] != shape_b[0]:
        if shape_a[0] == 1 and a.requires_grad:
            return product(squeeze(a, 0), b)
        if shape_b[0] == 1 and b.requires_grad:
            return product(a, squeeze(b, 0))
    try:
        lead = tuple(np.broadcast_shapes(shape_a[:-2], shape_b[:-2]))
    except ValueError:
        raise _errors.broadcast_error(shape_a[:-2], shape_b[:-2]) from None
    count = math.prod(lead)
    rows, inner = (shape_a[-2] if len(shape_a) > 1 else 1), shape_a[-1]
    depth_b, columns = (shape_b[0], 1) if vector else shape_b[-2:]
    left = reshape(expand(a, *lead, rows, inner), count, rows, inner)
    if vector:
        right = unsqueeze(reshape(expand(b, *lead, depth_b), count, depth_b), 2)
    else:
        right = reshape(expand(b, *lead, depth_b, columns), count, depth_b, columns)
    _check_bmm(left, right)
    result = _product(left, right, "BmmBackward0")
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
    _check_dtypes(a, b)
    lead_a, lead_b = shape_a[:-2], shape_b[:-2]
    for x, y in zip(reversed(lead_a), reversed(lead_b), strict=False):
        if x != y and 1 not in (x, y):
            raise _errors.broadcast_error(lead_a, lead_b)


@overridable
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Add a matrix and a product of matrices."""
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix._array.ndim}-D tensor")
    _check_mm(mat1, mat2)
    refuse("mm", mat1._array.dtype)
    shape, own = (mat1._array.shape[0], mat2._array.shape[1]), tuple(input._array.shape)
    for k, (size, have) in enumerate(zip(reversed(shape), reversed(own), strict=False), 1):
        if have not in (1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({have}) at non-singleton "
                f"dimension {2 - k}.  Target sizes: {_errors.sizes(shape)}.  Tensor sizes: {_errors.sizes(own)}"
            )
    return record(la.addmm, (input, mat1, mat2), {"beta": beta, "alpha": alpha}, "AddmmBackward0")
