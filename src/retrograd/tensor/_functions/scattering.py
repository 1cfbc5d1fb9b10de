"""Writing along one dimension at indices of the tensor's own rank: the scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import raw_leaf
from ..._core.numpy_namespace import raw_namespace
from ..._modes import current_mode
from ..._ops import along, reducing
from ...overrides import takes_out
from .. import _base
from .._base import edge_of, wrap
from .._object.numbers import element_of
from .._recording.flat import EXACT
from .._recording.no_derivative import without_derivative
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import record
from .gathering import INT64, check_bounds, refuse_index_dtype, refuse_kernel


def _sources(input: Any, dim: int, index: Any, src: Any) -> tuple[int, Any, Any]:
    """Check the arguments of a scatter; returns the axis, the index and the source as a tensor."""
    own, at = input._array, index._array
    axis = dim if type(dim) is int and 0 <= dim < own.ndim else _errors.wrap_dim(dim, own.ndim)
    if type(src) is float and type(at) is type(own) is np.ndarray and at.dtype is INT64 and own.shape == at.shape != ():
        values = np.empty(at.shape, own.dtype)
        values.fill(element_of(src, own.dtype))
        check_bounds(at, own.shape[axis], axis)
        return axis, index, wrap(values)
    if type(src) in EXACT and at.dtype is INT64 and own.ndim:
        given = src._array
        same = at.shape == own.shape or own.ndim == 1 == at.ndim
        if same and given.shape == at.shape and given.dtype is own.dtype:  # nothing else to refuse
            check_bounds(at, own.shape[axis], axis)
            return axis, index, src
    if at.size:
        refuse_index_dtype("scatter", index)
    elif at.dtype.kind not in "iu" or at.ndim != max(input._array.ndim, 1):  # torch does not look at an empty index
        at = np.zeros((0,) * max(input._array.ndim, 1), np.int64)
        index = wrap(at)
    if isinstance(src, _base.Tensor) and src._array.dtype != input._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    _check_shapes(input, axis, index, src)
    if isinstance(src, _base.Tensor) and src._array.ndim != at.ndim and at.size:  # no dimensions are as good as one
        index, src = index.reshape(-1), src.reshape(-1)
        at = index._array
    if not isinstance(src, _base.Tensor):
        library = raw_namespace(raw_leaf(input._array)).module
        src = wrap(library.full(tuple(at.shape), element_of(src, input._array.dtype)))
    check_bounds(at, input._array.shape[axis] if input._array.ndim else 1, axis)
    return axis, index, src


def _check_shapes(input: Any, axis: int, index: Any, src: Any) -> None:
    shape, own = tuple(index._array.shape), tuple(input._array.shape)
    if not index._array.size:
        return
    source = tuple(src._array.shape) if isinstance(src, _base.Tensor) else None
    for name, other in (("self", own), ("src", source)):
        if other is not None and max(len(other), 1) != max(len(shape), 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
    too_large = any(k != axis and n > m for k, (n, m) in enumerate(zip(shape, own, strict=False)))
    beyond = source is not None and any(n > m for n, m in zip(shape, source or (1,), strict=False))
    text = f"Expected index {_errors.sizes(shape)} to be no larger than self {_errors.sizes(own)} apart from dimension {axis}"
    if source is not None and (too_large or beyond):
        raise RuntimeError(f"{text} and to be no larger size than src {_errors.sizes(source)}")
    if too_large:
        raise RuntimeError(text)


@takes_out
@needs_dtype_of_result
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """Write elements along a dimension to given indices, into a copy: `out[index[i][j]][j] = src[i][j]` for dim 0.

    Args:
        input: a tensor
        dim: the dimension
        index: a tensor of int64
        src: what is written, a tensor or a number
        reduce: "add" or "multiply" combine it with what is there

    Example:
        >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[0], [2]]), 1.0)
        tensor([[1., 0., 0.],
                [0., 0., 1.]])
    """
    given = value if src is None else src
    axis, index, src = _sources(input, dim, index, given)
    if reduce is not None:
        return _reduced(input, axis, index, src, reduce)
    name = "ScatterBackward0" if isinstance(given, _base.Tensor) else "ScatterBackward1"
    return record(along.scatter_assign, (input, index, src), {"axis": axis}, name, {"dim": dim})


def _reduced(input: Any, axis: int, index: Any, src: Any, reduce: str) -> Any:
    """Scatter with torch's old reductions, which have no derivative."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    params = {"axis": axis, "reduce": "sum" if reduce == "add" else "prod", "include_self": True}
    result = wrap(reducing.scatter_reduce.bind([input._array, index._array, src._array], params))
    if current_mode().tracks and (input._edge is not None or src._edge is not None):
        result._edge = without_derivative("aten::scatter", (edge_of(input), None, edge_of(src)))
    return result


@takes_out
@needs_dtype_of_result
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Add elements along a dimension to those at given indices, in a copy.

    Args:
        input: a tensor
        dim: the dimension
        index: a tensor of int64; an index may occur several times
        src: what is added

    Example:
        >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]))
        tensor([4., 0., 2.])
    """
    axis, index, src = _sources(input, dim, index, src)
    return record(along.scatter_add, (input, index, src), {"axis": axis}, "ScatterAddBackward0")


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_UNKNOWN = {"mean": "b", "amax": "c", "amin": "c"}


@takes_out
@needs_dtype_of_result
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Combine elements along a dimension with those at given indices, in a copy.

    Args:
        input: a tensor
        dim: the dimension
        index: a tensor of int64
        src: what is combined
        reduce: "sum", "prod", "mean", "amax" or "amin"
        include_self: whether what is in `input` takes part

    Example:
        >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 5.0, 3.0]), "amax")
        tensor([5., 3.])
    """
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis, index, src = _sources(input, dim, index, src)
    kernel: str | None = f"scatter_gather_tensor_cpu_reduce_{reduce}"
    if not index._array.size:
        kernel = "div_floor_cpu" if reduce == "mean" else None
    return reduced_along(input, axis, index, src, reduce, include_self, "ScatterReduceBackward0", kernel)


def reduced_along(
    input: Any, axis: int, index: Any, src: Any, reduce: str, include_self: bool, name: str, kernel: str | None
) -> Any:
    """Reduce `src` into a copy of `input` at indices along an axis."""
    if kernel is not None and input._array.dtype.kind in _UNKNOWN.get(reduce, ""):
        refuse_kernel(kernel, input)
    params = {"axis": axis, "reduce": reduce, "include_self": include_self}
    return record(reducing.scatter_reduce, (input, index, src), params, name)
