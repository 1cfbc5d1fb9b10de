"""Products of tensors besides those of matrices: tensordot, kron, inner, cross, chains."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ... import _dtypes, _errors
from ..._dtypes import CPP_NAMES
from ..._ops import matrix_products as la
from ..._ops import shape as s
from ..._warnings import warn_once
from ...overrides import declared, overridable, takes_out
from .. import _base
from .._recording.record import NDARRAY, record
from .._recording.refusals import kernel, refuse, refused
from .einsum import contracted
from .elementwise import _mul
from .joining import cat, stack
from .matrix_checks import scalar_name
from .matrix_products import dot, mm
from .reduce import sum as summed
from .shape import reshaped, squeeze, unsqueeze


def _dims_of(a: Any, b: Any, dims: Any) -> tuple[list[int], list[int]]:
    """Read the dims of tensordot: a number, two lists, or a tensor of either."""
    if isinstance(dims, _base.Tensor):
        dims = dims.tolist() if dims._array.size > 1 else int(dims)
    if isinstance(dims, (list, tuple)) and len(dims) == 2:
        first, second = dims
        return ([first], [second]) if isinstance(first, int) else (list(first), list(second))
    if not isinstance(dims, int):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a._array.ndim, b._array.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return list(range(-dims, 0)), list(range(dims))


@takes_out(lowered="cpu cuda")
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Multiply two tensors and sum over several dimensions of each.

    Args:
        a: a tensor
        b: a tensor
        dims: how many: the last of `a` with the first of `b`; or two lists of dimensions

    Example:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3), dims=([1, 2], [1, 0]))
        tensor([12., 12.])
    """
    given_a, given_b = _dims_of(a, b, dims)
    if len(given_a) != len(given_b):
        raise RuntimeError("both dimension lists should have same length")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if a._array.dtype.kind == "b" and a._array.size and b._array.size:
        refuse("dot" if a._array.ndim == b._array.ndim == len(given_a) == 1 else "mm", a._array.dtype)
    for i, j in zip(given_a, given_b, strict=True):
        at, bt = _errors.wrap_dim(i, a._array.ndim), _errors.wrap_dim(j, b._array.ndim)
        m, n = a._array.shape[at], b._array.shape[bt]
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in "
                f"dim {j}"
            )
        if m != n:  # one is broadcast: the other's sum comes first
            a = summed(a, at, True) if n == 1 else a
            b = summed(b, bt, True) if m == 1 else b
    left, right = list(range(a._array.ndim)), [a._array.ndim + k for k in range(b._array.ndim)]
    axes = [_errors.wrap_dim(i, len(left)) for i in given_a], [_errors.wrap_dim(j, len(right)) for j in given_b]
    for one in axes:
        if len(set(one)) != len(one):
            twice = next(k for k in one if one.count(k) > 1)
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    for i, j in zip(*axes, strict=True):
        right[j] = left[i]
    out = [n for n in left if n not in right] + [n for n in right if n not in left]
    return contracted(a, b, (tuple(left), tuple(right), tuple(out)))


@takes_out
def kron(input: Any, other: Any) -> Any:
    """Return the Kronecker product: each element of one tensor times the whole of the other.

    Args:
        input: a tensor
        other: a tensor

    Example:
        >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
        tensor([ 1,  2, 10, 20])
    """
    x, y = tuple(input._array.shape), tuple(other._array.shape)
    wide = contracted(input, other, _labels_of_kron(len(x), len(y)))
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    shape = tuple([m * n for m, n in zip(x, y, strict=True)])
    if type(array := wide._array) is not NDARRAY or array.flags.c_contiguous:  # nobody else has seen this memory
        return record(s.reshape, (wide,), {"shape": shape}, "UnsafeViewBackward0")
    return reshaped(wide, shape)


@lru_cache(64)
def _labels_of_kron(x: int, y: int) -> Any:
    """Label the axes of two tensors, and their product's: each of the first before its partner of the second."""
    left, right = [2 * k for k in range(-x, 0)], [2 * k + 1 for k in range(-y, 0)]
    return tuple(left), tuple(right), tuple(sorted(left + right))


@takes_out(lowered="cpu cuda")
def inner(input: Any, other: Any) -> Any:
    """Sum the products over the last dimension of two tensors.

    Args:
        input: (..., k)
        other: (..., k)

    Example:
        >>> torch.inner(torch.tensor([1, 2]), torch.tensor([[3, 4], [5, 6]]))
        tensor([11, 17])
    """
    x, y = input._array, other._array
    if not x.ndim or not y.ndim:
        return _mul(input, other)
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{_errors.sizes(x.shape)} and {_errors.sizes(y.shape)}"
        )
    if x.ndim == 1 == y.ndim and x.dtype == y.dtype:
        return dot(input, other)
    return tensordot(input, other, ([-1], [-1]))


# ---- vectors ----
@takes_out(out_dtype="result")
def linalg_cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """Return the cross product of vectors with three elements.

    Args:
        input: a tensor
        other: a tensor; shapes broadcast
        dim: the dimension of the vectors; the last by default

    Example:
        >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    x, y = input._array, other._array
    if x.ndim != y.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = dim if 0 <= dim < x.ndim else _errors.wrap_dim(dim, x.ndim)
    if not x.ndim or x.shape[at] != 3 or y.shape[at] != 3:
        sizes = [1 if not one.ndim else one.shape[at] for one in (x, y)]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input)} but found {scalar_name(other)}")
    if x.shape != y.shape:
        for a, b in zip(x.shape, y.shape, strict=True):
            if a != b and 1 not in (a, b):
                raise _errors.broadcast_error(tuple(x.shape), tuple(y.shape))
    if x.dtype.kind == "b":
        refuse("cross", x.dtype)
    return record(la.cross, (input, other), {"axis": at - x.ndim}, "LinalgCrossBackward0", {"dim": dim})


refused("cross", b=kernel("cross"))


@takes_out(out_dtype="result")
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Compute the vector product along a dimension, by default the first of size 3."""
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release.",
        )
        dim = next((k for k, n in enumerate(input._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim)


@takes_out(lowered="cpu cuda")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Sum conj(x) * y along a dimension."""
    if x._array.dtype.kind in "biu":
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(x)}")
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_name(x)} and y of type {scalar_name(y)} instead"
        )
    return summed(_mul(x.conj() if x._array.dtype.kind == "c" else x, y), dim)


# ---- chains ----
@takes_out(lowered="cpu cuda")
def multi_dot(tensors: Any) -> Any:
    """Multiply several matrices, in the order that needs the fewest operations.

    Args:
        tensors: matrices; the first and the last may be vectors

    Example:
        >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
        tensor([12., 12.])
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    ranks = [one._array.ndim for one in tensors]
    for place, rank in (("first", ranks[0]), ("last", ranks[-1])):
        if rank not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {place} tensor must be 1D or 2D but got {rank}D")
    for k, rank in enumerate(ranks[1:-1], 1):
        if rank != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {rank}D")
    matrices = list(tensors)
    matrices[0] = unsqueeze(matrices[0], 0) if ranks[0] == 1 else matrices[0]
    matrices[-1] = unsqueeze(matrices[-1], -1) if ranks[-1] == 1 else matrices[-1]
    for k in range(len(matrices)):
        if matrices[k]._array.dtype != matrices[0]._array.dtype:
            names = [CPP_NAMES[one._array.dtype.name] for one in (matrices[0], matrices[k])]
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {names[0]} and tensor {k} "
                f"{names[1]}"
            )
        if k and matrices[k - 1]._array.shape[1] != matrices[k]._array.shape[0]:
            shapes = [_errors.sizes(one._array.shape) for one in tensors[k - 1 : k + 1]]
            raise RuntimeError(
                f"multi_dot(): tensors {k - 1} and {k} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )
    result = _chain(matrices)
    if ranks[-1] == 1:
        result = squeeze(result, -1)
    return squeeze(result, 0) if ranks[0] == 1 else result


def _chain(matrices: list[Any]) -> Any:
    """Multiply matrices in the order that takes the fewest multiplications of numbers."""
    if len(matrices) == 2:
        return mm(*matrices)
    sizes = [matrices[0]._array.shape[0], *(m._array.shape[1] for m in matrices)]
    if len(matrices) == 3:
        first, second, third = matrices
        k, m, n, p = sizes
        left_first = k * m * n + k * n * p <= m * n * p + k * m * p
        return mm(mm(first, second), third) if left_first else mm(first, mm(second, third))
    cuts = _cuts(sizes)

    def multiplied(first: int, last: int) -> Any:
        if first == last:
            return matrices[first]
        at = cuts[first, last]
        return mm(multiplied(first, at), multiplied(at + 1, last))

    return multiplied(0, len(matrices) - 1)


def _cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Find where to cut each part of a chain, the shorter parts first."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    cuts = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            cost[first, last], cuts[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            )
    return cuts


@takes_out(lowered="cpu cuda")
def chain_matmul(*matrices: Any) -> Any:
    """Multiply a chain of matrices in the cheapest order."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
    )
    for one in matrices:
        if one._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {one._array.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return multi_dot(list(matrices)) if len(matrices) > 1 else matrices[0]


refused("trace", b=kernel("trace"))


@overridable(raised="cpu")
def trace(input: Any) -> Any:
    """Sum the diagonal of a matrix.

    Args:
        input: a matrix

    Example:
        >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._array.ndim}")
    refuse("trace", input._array.dtype)
    return record(la.trace, (input,), {}, "TraceBackward0")


# ---- products of several matrices at once, of rows or columns that belong to groups, and of small integers ----
@overridable
def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Multiply each group of one side by its matrix of the other; `offs` says where groups end on a side of two dimensions.

    Two sides of three dimensions are batches; with two of two, groups lie along what is summed over.
    """
    if mat_a.dim() not in (2, 3):
        raise RuntimeError("mat_a has to be 2 or 3d")
    if mat_b.dim() not in (2, 3):
        raise RuntimeError("mat_b has to be 2 or 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    has_flat_side = mat_a.dim() == 2 or mat_b.dim() == 2
    if has_flat_side != (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    made = mat_a @ mat_b if offs is None else _by_groups(mat_a, mat_b, offs)
    return made if out_dtype is None else made.to(out_dtype)


def _by_groups(mat_a: Any, mat_b: Any, offs: Any) -> Any:
    ends = offs.tolist()
    runs = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return stack([mat_a[:, first:last] @ mat_b[first:last] for first, last in runs])
    if mat_a.dim() == 2:
        rows = [mat_a[first:last] @ one for (first, last), one in zip(runs, mat_b, strict=True)]
        return _filled(cat(rows), mat_a.shape[0], 0)
    columns = [one @ mat_b[:, first:last] for (first, last), one in zip(runs, mat_a, strict=True)]
    return _filled(cat(columns, 1), mat_b.shape[1], 1)


def _filled(made: Any, length: int, dim: int) -> Any:
    """Add zeros for what belongs to no group."""
    missing = length - made.shape[dim]
    if not missing:
        return made
    shape = list(made.shape)
    shape[dim] = missing
    return cat([made, made.new_zeros(shape)], dim)


@overridable(forms="function")
def _int_mm(input: Any, mat2: Any) -> Any:
    """Multiply matrices of bytes, summing in 32 bits."""
    for name, one in (("self", input), ("mat2", mat2)):
        if one.dtype not in (_dtypes.int8, _dtypes.uint8):
            kind = scalar_name(one).lower()
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be int8 or uint8 but got {kind}")
    return input.to(_dtypes.int32) @ mat2.to(_dtypes.int32)


_grouped_mm = declared(grouped_mm, forms="function")
