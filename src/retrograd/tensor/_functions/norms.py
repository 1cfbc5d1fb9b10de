"""Norms of vectors and matrices, and condition numbers, under torch's names."""

from __future__ import annotations

import math
from typing import Any

from ... import _dtypes, _errors
from ..._core.numpy_namespace import is_half
from ..._ops import norms as ops
from ...overrides import takes_out
from .. import _base
from .._recording.record import record
from .creation import zeros
from .elementwise import where
from .matrix_checks import need_float, need_square, need_tensor, scalar_name
from .reduce import amax, amin
from .reduce import sum as summed
from .shape import movedim, reshape, unsqueeze

INFINITE = (math.inf, -math.inf)


def _all_axes(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    axes = tuple(_errors.wrap_dim(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        twice = next(a for a in axes if axes.count(a) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return axes or tuple(range(ndim)) if ndim else ()


def _cast(tensor: Any, dtype: Any, name: str) -> Any:
    """Bring a tensor to the dtype in which its norm is asked for."""
    own = _base.dtype_of(tensor)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype._scalar_name}")
    if own.is_complex != dtype.is_complex:
        which = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {which} for {which} inputs, but got {dtype._scalar_name}")
    if _dtypes.promote_types(own, dtype) != dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({own._scalar_name}) should be convertible without narrowing to the "
            f"specified dtype ({dtype._scalar_name})"
        )
    return tensor.to(dtype)


def _shown(order: Any) -> str:
    return f"{order:g}" if isinstance(order, float) else str(order)


def vector(input: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Compute the norm of vectors along dimensions."""
    name = "linalg.vector_norm"
    array = input._array
    if array.dtype.kind not in "fcV":
        need_float(input, name)
    if dtype is not None:
        input = _cast(input, dtype, name)
        array = input._array
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    axes = _all_axes(dim, array.ndim)
    if not array.size and (ord < 0 or ord == math.inf):
        _refuse_empty(array.shape, dim, axes, ord)
    return record(ops.norm, (input,), {"p": ord, "axis": axes, "keepdims": bool(keepdim)}, "LinalgVectorNormBackward0")


def _refuse_empty(shape: Any, dim: Any, axes: tuple[int, ...], ord: Any) -> None:
    """Refuse an extreme of nothing."""
    if dim is None or dim == ():
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {_shown(ord)} norm on an empty tensor because the operation does not "
            "have an identity"
        )
    for axis in axes:
        if shape[axis] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {_shown(ord)} norm on the dimension {axis}because this dimension "
                "is empty and the operation does not have an identity"
            )


@takes_out(raised="cuda", out_dtype="result")
def vector_norm(input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Compute sum(|x| ** ord) ** (1 / ord) over dimensions, of all if none are given."""
    need_tensor(input, "linalg_vector_norm", "input")
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    return vector(input, ord, dim, keepdim, dtype)


# ---- matrices ----
@takes_out(raised="cuda")
def matrix_norm(
    input: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """Compute a norm of matrices that lie in two dimensions."""
    need_tensor(input, "linalg_matrix_norm", "input")
    return matrix(input, ord, dim, keepdim, dtype)


def matrix(tensor: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Compute a norm of matrices."""
    name = "linalg.matrix_norm"
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    need_float(tensor, name)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(str(d) for d in dim)}")
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    if ord not in ("fro", "nuc") and (isinstance(ord, str) or abs(ord) not in (1, 2, math.inf)):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    first, second = (_errors.wrap_dim(d, tensor._array.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        tensor = _cast(tensor, dtype, name)
    if ord == "fro":
        return vector(tensor, 2, (first, second), keepdim, None)
    if ord == "nuc" or abs(ord) == 2:
        return _spectral(tensor, ord, first, second, keepdim)
    return _largest_sum(tensor, ord, first, second, keepdim)


def _spectral(tensor: Any, ord: Any, first: int, second: int, keepdim: bool) -> Any:
    """Norms that singular values make: their sum, the largest, the smallest."""
    from .svd import linalg_svdvals  # most norms need no decompositions

    if is_half(tensor._array.dtype):
        raise RuntimeError(f"linalg.matrix_norm: Low precision dtypes not supported. Got {scalar_name(tensor)}")
    matrices = movedim(tensor, (first, second), (-2, -1))
    if not tensor._array.size and ord == 2:
        result = zeros(tuple(matrices._array.shape[:-2]), dtype=_base.dtype_of(tensor).to_real(), device=tensor.device)
    else:
        values = linalg_svdvals(matrices)
        result = summed(values, -1) if ord == "nuc" else (amax if ord > 0 else amin)(values, -1)
    if keepdim:
        for axis in sorted((first, second)):
            result = unsqueeze(result, axis)
    return result


def _largest_sum(tensor: Any, ord: Any, first: int, second: int, keepdim: bool) -> Any:
    """The largest, or smallest, 1-norm of columns, or of rows."""
    across, along = (first, second) if abs(ord) == 1 else (second, first)
    if across < along and not keepdim:
        along -= 1
    sums = vector(tensor, 1, across, keepdim, None)
    if ord > 0 and not tensor._array.size and not sums._array.shape[along]:
        shape = [n for k, n in enumerate(sums._array.shape) if k != along or keepdim]
        if keepdim:
            shape[along] = 1
        return zeros(shape, dtype=_base.dtype_of(sums), device=tensor.device)
    return (amax if ord > 0 else amin)(sums, along, keepdim)


@takes_out(raised="cuda")
def linalg_norm(
    input: Any,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """Compute a norm of vectors or matrices, as `ord` and `dim` say."""
    need_tensor(input, "linalg_norm", "input")
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return vector(input, 2, dims, keepdim, dtype)
    ndim = input._array.ndim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {_errors.sizes(dims)}")
    if dims is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str) or (ndim == 2 if dims is None else len(dims) == 2):
        return matrix(input, ord, (-2, -1) if dims is None else dims, keepdim, dtype)
    return vector(input, ord, dims, keepdim, dtype)


@takes_out(raised="cuda")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Compute the p-norm over dimensions; "nuc" is the nuclear norm of matrices."""
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if not isinstance(p, str):
        return vector(input, 2 if p is None else p, dims, keepdim, dtype)
    if p == "fro" and (dims is None or len(dims) <= 2):
        return vector(input, 2, dims, keepdim, dtype)
    if dims is None and input._array.ndim >= 2:
        dims = tuple(range(input._array.ndim))
    return matrix(input, p, dims or (-2, -1), keepdim, dtype)


# ---- condition numbers ----
@takes_out(forms="", raised="cpu")
def cond(input: Any, p: Any = None) -> Any:
    """Compute the norm of matrices times the norm of their inverses."""
    from .svd import linalg_svdvals

    if input._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    known = ("fro", "nuc") if isinstance(p, str) else (None, 1, -1, 2, -2, *INFINITE)
    if p not in known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not input._array.size and (p is not None or input._array.shape[-1] == input._array.shape[-2] == 0):
        return zeros(tuple(input._array.shape[:-2]), dtype=_base.dtype_of(input).to_real(), device=input.device)
    if p is None or p in (2, -2):
        values = linalg_svdvals(input)
        largest, smallest = values[..., 0], values[..., -1]
        return largest / smallest if p != -2 else smallest / largest
    need_square(input, f"linalg.cond(ord={_shown(p)})")
    if p == "nuc":
        values = linalg_svdvals(input)
        return summed(values, -1) * summed(1 / values, -1)
    return _by_inverse(input, p)


def _by_inverse(matrices: Any, p: Any) -> Any:
    """Multiply norms of matrices and of their inverses; a singular matrix has none, and its number is infinite."""
    from .solving import inv_ex

    inverse, info = inv_ex(matrices)
    singular = info != 0
    inverse = where(reshape(singular, (*info._array.shape, 1, 1)), 1, inverse)
    product = matrix(matrices, p, (-2, -1), False, None) * matrix(inverse, p, (-2, -1), False, None)
    return where(singular, math.inf, product)
