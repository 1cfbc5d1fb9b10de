"""Elements by rank or frequency: kthvalue, median, mode, topk, aminmax."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.arrays import Batched
from ..._ops import selecting
from ..._ops.reduce import aminmax as aminmax_arrays
from ...overrides import takes_out
from .. import _base
from .._aliasing.entering import is_of_innermost
from .._object.return_types import make, named
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import record
from .._recording.refusals import kernel, refuse, refused
from .reduce import _ALL, _axes, _not_empty

refused("kthvalue", "median", bc=kernel("{name}_cpu"))
refused("median_at", bc=kernel("median_out"))
refused("mode", c=kernel("mode_cpu"))
refused(
    "topk",
    b=(RuntimeError, "topk does not support bool dtypes on CPU"),
    c=(RuntimeError, " topk does not support complex dtypes on CPU"),
)
return_aminmax = make("aminmax", "min", "max")
return_kthvalue = make("kthvalue", "values", "indices")
return_median = make("median", "values", "indices")
return_nanmedian = make("nanmedian", "values", "indices")
return_mode = make("mode", "values", "indices")
return_topk = make("topk", "values", "indices")


@takes_out
@needs_dtype_of_result
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the k-th smallest element along a dimension, and its index.

    Args:
        input: a tensor
        k: its rank, from 1
        dim: the dimension; the last by default
        keepdim: keep that dimension, with size 1

    Example:
        >>> torch.kthvalue(torch.tensor([3.0, 9.0, 1.0]), 2).values
        tensor(3.)
    """
    axis = _row_axis("kthvalue", input, dim)
    if not 1 <= k <= (input._array.shape[axis] if input._array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if input._array.ndim:
        refuse("kthvalue", input._array.dtype)
    params = {"k": k, "axis": axis, "keepdims": keepdim}
    return named(return_kthvalue, record(selecting.kthvalue, (input,), params, None, {"dim": dim}))


def _row_axis(name: str, input: Any, dim: int) -> int:
    """Return the axis along which one element of each row is chosen; there must be one."""
    array = input._array
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    if not array.size:
        _not_empty(input, (axis,), name)
    return axis


def _median(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    of_all, of_rows, kind, node_of_all, node_of_rows = _MEDIANS[name]
    if dim is None:
        if keepdim:
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        if input._array.dtype.kind in "bc":
            refuse("median", input._array.dtype)
        if type(input._array) is Batched and is_of_innermost(input._array):  # as `max` does
            return _median(name, input.reshape(-1), 0, False)[0]
        return record(of_all, (input,), {"axis": _ALL[input._array.ndim], "keepdims": False}, node_of_all)
    axis = _row_axis("median", input, dim)
    if input._array.dtype.kind in "bc":
        refuse("median_at", input._array.dtype)
    results = record(of_rows, (input,), {"axis": axis, "keepdims": keepdim}, node_of_rows, {"dim": dim})
    return named(kind, results)


_MEDIANS: dict[str, tuple[Any, ...]] = {
    "median": (selecting.median, selecting.median_at, return_median, "MedianBackward0", "MedianBackward1"),
    "nanmedian": (
        selecting.nanmedian,
        selecting.nanmedian_at,
        return_nanmedian,
        "NanmedianBackward0",
        "NanmedianBackward1",
    ),
}


@takes_out
@needs_dtype_of_result
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, of all elements or along a dimension with its index; of two in the middle, the smaller; NaN if there is one.

    Args:
        input: a tensor
        dim: the dimension; without it, the median of all
        keepdim: keep that dimension, with size 1

    Example:
        >>> torch.median(torch.tensor([3.0, 9.0, 1.0, 7.0]))
        tensor(3.)
    """
    return _median("median", input, dim, keepdim)


@takes_out
@needs_dtype_of_result
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the median of what is not NaN, of two the lower."""
    return _median("nanmedian", input, dim, keepdim)


@takes_out
@needs_dtype_of_result
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent element along a dimension, of several the smallest, and an index of it.

    Args:
        input: a tensor
        dim: the dimension; the last by default
        keepdim: keep that dimension, with size 1

    Example:
        >>> torch.mode(torch.tensor([1, 2, 2, 3])).values
        tensor(2)
    """
    axis = _row_axis("mode", input, dim)
    if input._array.ndim and input._array.size:
        refuse("mode", input._array.dtype)
    params = {"axis": axis, "keepdims": keepdim}
    return named(return_mode, record(selecting.mode, (input,), params, None, {"dim": dim}))


@takes_out
@needs_dtype_of_result
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest elements along a dimension, and their indices.

    Args:
        input: a tensor
        k: how many
        dim: the dimension; the last by default
        largest: False for the smallest
        sorted: whether the result is in order; here it always is

    Example:
        >>> values, indices = torch.topk(torch.tensor([3.0, 9.0, 1.0, 7.0]), 2)
        >>> values, indices
        (tensor([9., 7.]), tensor([1, 3]))
    """
    array = input._array
    if array.dtype.kind in "bc":
        refuse("topk", array.dtype)
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    if not 0 <= k <= (array.shape[axis] if array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    params = {"k": k, "axis": axis, "largest": bool(largest)}
    return named(return_topk, record(selecting.topk, (input,), params, None, {"dim": dim}))


@takes_out
@needs_dtype_of_result
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the smallest and the largest elements, of all or along a dimension; equal ones share the gradient.

    Args:
        input: a tensor
        dim: the dimension; without it, all
        keepdim: keep that dimension, with size 1

    Example:
        >>> low, high = torch.aminmax(torch.tensor([3.0, 9.0, 1.0]))
        >>> low, high
        (tensor(1.), tensor(9.))
    """
    axes = _axes(dim, input._array.ndim)
    if dim is None and not input._array.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if dim is not None and axes and input._array.shape[axes[0]] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {axes[0]} to have non-zero size.")
    if input._array.dtype.kind == "c":
        name = _base.dtype_of(input)._scalar_name
        if dim is not None and not axes:
            raise RuntimeError(f"aminmax not implemented for {name}")
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{name}'")
    params = {"axis": axes, "keepdims": bool(keepdim)}
    return return_aminmax(*record_keeping_outputs(aminmax_arrays, (input,), params, "AminmaxBackward0", ("min", "max")))
