"""Norms of vectors and matrices, condition numbers and distances, under torch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.numpy_namespace import is_half
from ..._ops import norms as ops
from ..._ops.renorm import renorm as limited
from ...overrides import overridable, takes_out
from .. import _base
from .._recording.record import record
from .creation import zeros
from .elementwise import sub, where
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
    """Return a norm of vectors.

    Args:
        x: a tensor
        ord: the order: a number, inf or -inf
        dim: a dimension or several; without it, all elements
        keepdim: keep these dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.linalg.vector_norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
        tensor([ 5., 10.])
    """
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
    """Return a norm of matrices.

    Args:
        A: (..., m, n)
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf
        dim: the two dimensions of the matrices
        keepdim: keep these dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
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
    """Return a norm of vectors or matrices.

    Args:
        input: a tensor
        ord: the order: a number, inf, -inf, "fro" or "nuc"; 2 for vectors, "fro" for matrices if it is not given
        dim: one dimension for vectors, two for matrices; without it, all elements
        keepdim: keep these dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor(5.)
    """
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
    """Return the norm of a tensor, over all elements or over dimensions; `torch.linalg.norm` is its successor.

    Args:
        input: a tensor
        p: the order, "fro" or "nuc"
        dim: a dimension or several; without it, all
        keepdim: keep these dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
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


# ---- distances ----
MANY = 25  # rows; from here on distances come from inner products
MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@overridable(raised="cuda")
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Compute the p-norm of the difference."""
    gap = sub(input, other)
    if gap._array.dtype.kind in "biu":
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {scalar_name(gap)} instead."
        )
    return vector(gap, p, None, False, None)


@overridable(raised="cpu cuda")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """Return the distances between all pairs of points of two sets.

    Args:
        x1: points (..., P, M)
        x2: points (..., R, M)
        p: the order of the norm

    Returns:
        Distances (..., P, R).

    Example:
        >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    need_tensor(x1, "cdist", "x1")
    need_tensor(x2, "cdist", "x2", 2)
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor._array.dtype.kind in "biuc":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(tensor)}")
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {tensor._array.ndim}D")
    x, y = x1._array, x2._array
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    try:
        np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    except ValueError:
        raise _errors.broadcast_error(tuple(x.shape[:-2]), tuple(y.shape[:-2])) from None
    if x.dtype != y.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}")
    _need_kernel(x1, "cdist")
    by_products = MODES[compute_mode]
    if by_products is None:
        by_products = x.shape[-2] > MANY or y.shape[-2] > MANY
    params = {"p": p, "products": bool(by_products and p == 2)}
    return record(ops.cdist, (x1, x2), params, "CdistBackward0")


def _need_kernel(tensor: Any, name: str) -> None:
    if tensor._array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(tensor)}'")


@overridable(raised="cuda")
def pdist(input: Any, p: float = 2) -> Any:
    """Compute the p-norm distance between every two rows of a matrix."""
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input._array.dtype.kind in "biuc":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    _need_kernel(input, "pdist")
    pairs = tuple(_base.wrap(at) for at in np.triu_indices(input._array.shape[0], 1))
    return record(ops.cdist, (input, input), {"p": p, "products": False}, "CdistBackward0")[pairs]


# ---- slices whose norm is limited ----
@takes_out(raised="cuda", out_dtype="result")
def renorm(input: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Scale down the slices along a dimension whose p-norm is larger than `maxnorm`."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    rank = input._array.ndim
    if rank < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {rank} dimensions")
    axis = _errors.wrap_dim(dim, rank)
    if input._array.dtype.kind in "iub":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{_base.dtype_of(input)._scalar_name}"
        )
    return record(limited, (input,), {"p": p, "axis": axis, "limit": maxnorm}, None, {"dim": dim})
