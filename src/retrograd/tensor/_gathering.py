"""Reading and writing along one dimension: gather, index_select, scatter, index_add."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _errors
from .._core.arrays import LevelArray
from .._core.numpy_namespace import ARRAY
from .._ops import index as ops
from .._ops.shape import reshape as reshape_array
from ..overrides import overridable
from . import _base
from ._base import wrap
from ._indexing import _scalar
from ._record import laid_out, record


def _refuse_index_dtype(name: str, index: Any) -> None:
    if index._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


@overridable
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Take elements along a dimension."""
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _refuse_index_dtype("gather", index)
    if index._array.ndim != input._array.ndim and max(index._array.ndim, 1) != max(input._array.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for k in range(index._array.ndim):
        if k != axis and index._array.shape[k] > input._array.shape[k]:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {_errors.sizes(index._array.shape)} to be no "
                f"larger than self {_errors.sizes(input._array.shape)} apart from dimension {axis}"
            )
    if input._array.ndim:
        _check_bounds(index, input._array.shape[axis], axis)
    return record(ops.take_along, (input, index), {"axis": axis}, "GatherBackward0", {"dim": dim})


def _check_bounds(index: Any, size: int, axis: int) -> None:
    array = index._array
    if isinstance(array, LevelArray) or not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise RuntimeError(f"index {low if low < 0 else high} is out of bounds for dimension {axis} with size {size}")


@overridable
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Take whole slices along a dimension."""
    axis = _errors.wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._array.dtype.kind not in "iu":
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input._array.ndim:
        return record(ops.getitem, (input,), {"index": ()}, "IndexSelectBackward0")
    if not isinstance(index._array, LevelArray) and index._array.size:
        size = input._array.shape[axis]
        low, high = int(index._array.min()), int(index._array.max())
        if low < 0 or high >= size:
            if axis == 1:
                wrong = next(int(k) for k in index._array.flat if k < 0 or k >= size)
                raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")
            raise IndexError("index out of range in self")
    array = index._array if index._array.ndim else reshape_array(index._array, shape=(1,))
    layout = (slice(None),) * axis + (ARRAY,)
    shown = {"dim": dim, "indices": (index,)}
    result = record(ops.index, (input, array), {"layout": layout}, "IndexSelectBackward0", shown)
    result._array = laid_out(result._array)
    return result


def _scatter_sources(input: Any, dim: int, index: Any, src: Any) -> tuple[int, Any]:
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _refuse_index_dtype("scatter", index)
    _check_scatter_shapes(input, axis, index, src)
    if not isinstance(src, _base.Tensor):
        src = wrap(np.full(tuple(index._array.shape), src, input._array.dtype))
    elif src._array.dtype != input._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if input._array.ndim:
        _check_bounds(index, input._array.shape[axis], axis)
    return axis, src


def _check_scatter_shapes(input: Any, axis: int, index: Any, src: Any) -> None:
    shape, own = tuple(index._array.shape), tuple(input._array.shape)
    if not index._array.size:
        return
    source = tuple(src._array.shape) if isinstance(src, _base.Tensor) else None
    for name, other in (("self", own), ("src", source)):
        if other is not None and max(len(other), 1) != max(len(shape), 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
    too_large = any(k != axis and n > m for k, (n, m) in enumerate(zip(shape, own, strict=False)))
    text = f"Expected index {_errors.sizes(shape)} to be no larger than self {_errors.sizes(own)} apart from dimension {axis}"
    if source is not None and (too_large or any(n > m for n, m in zip(shape, source, strict=False))):
        raise RuntimeError(f"{text} and to be no larger size than src {_errors.sizes(source)}")
    if too_large:
        raise RuntimeError(text)


@overridable
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Any:
    """Return a copy with `src` written at indices along a dimension."""
    given = value if src is None else src
    axis, src = _scatter_sources(input, dim, index, given)
    name = "ScatterBackward0" if isinstance(given, _base.Tensor) else "ScatterBackward1"
    return record(ops.scatter_assign, (input, index, src), {"axis": axis}, name, {"dim": dim})


@overridable
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return a copy with `src` added at indices along a dimension."""
    axis, src = _scatter_sources(input, dim, index, src)
    return record(ops.scatter_add, (input, index, src), {"axis": axis}, "ScatterAddBackward0")


def _check_index_add(input: Any, axis: int, index: Any, source: Any) -> None:
    shape = tuple(index._array.shape)
    if len(shape) > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {len(shape)} with type: {_scalar(index)} and "
            f"size: {_errors.sizes(shape)}"
        )
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"index_add_(): self ({_scalar(input)}) and source ({_scalar(source)}) must have the same scalar type"
        )
    count, size = index._array.size, source._array.shape[axis] if source._array.ndim else 1
    if count != size:
        raise RuntimeError(
            f"index_add_(): Number of indices ({count}) should be equal to source.size(dim): ({size}), for dim: {axis}"
        )
    if input._array.ndim:
        _check_bounds(index, input._array.shape[axis], axis)


@overridable
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Return a copy with slices of `source` added along a dimension."""
    axis = _errors.wrap_dim(dim, input._array.ndim)
    layout = (slice(None),) * axis + (ARRAY,)
    _check_index_add(input, axis, index, source)
    params = {"layout": layout, "alpha": alpha}
    return record(ops.index_add, (input, source, index._array), params, "IndexAddBackward0")
