"""Elements by rank or frequency: kthvalue, median, mode, topk, aminmax."""

from __future__ import annotations

from typing import Any

from .. import _errors
from .._ops import selecting
from .._ops.reduce import aminmax as aminmax_arrays
from ..overrides import takes_out
from . import _base
from ._kept_outputs import record_keeping_outputs
from ._out_dtypes import needs_dtype_of_result
from ._record import record
from ._reductions import _ALL, _axes, _not_empty
from ._refusals import REFUSED, kernel, refuse
from ._return_types import make

REFUSED.update(
    {
        "kthvalue": {"bc": kernel("kthvalue_cpu")},
        "median": {"bc": kernel("median_cpu")},
        "median_at": {"bc": kernel("median_out")},
        "mode": {"c": kernel("mode_cpu")},
        "topk": {
            "b": (RuntimeError, "topk does not support bool dtypes on CPU"),
            "c": (RuntimeError, " topk does not support complex dtypes on CPU"),
        },
    }
)
return_aminmax = make("aminmax", "min", "max")
return_kthvalue, return_median, return_nanmedian, return_mode, return_topk = (
    make(name, "values", "indices") for name in ("kthvalue", "median", "nanmedian", "mode", "topk")
)


def _chosen(
    primitive: Any, input: Any, dim: int, axis: int, keepdim: bool, node: str | None = None, **more: Any
) -> Any:
    """Run an operation that chooses one element of each row."""
    return record(primitive, (input,), {"axis": axis, "keepdims": keepdim, **more}, node, {"dim": dim})


@takes_out
@needs_dtype_of_result
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Take the k-th smallest element along a dimension."""
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _not_empty(input, (axis,), "kthvalue")
    if not 1 <= k <= (input._array.shape[axis] if input._array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if input._array.ndim:
        refuse("kthvalue", input._array.dtype)
    return return_kthvalue(*_chosen(selecting.kthvalue, input, dim, axis, keepdim, k=k))


def _median(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    of_all, of_rows, named = (
        (selecting.median, selecting.median_at, return_median)
        if name == "median"
        else (selecting.nanmedian, selecting.nanmedian_at, return_nanmedian)
    )
    if dim is None:
        refuse("median", input._array.dtype)
        params = {"axis": _ALL[input._array.ndim], "keepdims": False}
        return record(of_all, (input,), params, f"{name.capitalize()}Backward0")
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _not_empty(input, (axis,), "median")
    refuse("median_at", input._array.dtype)
    return named(*_chosen(of_rows, input, dim, axis, keepdim, f"{name.capitalize()}Backward1"))


@takes_out
@needs_dtype_of_result
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the median, of two the lower; NaN if there is one."""
    return _median("median", input, dim, keepdim)


@takes_out
@needs_dtype_of_result
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the median of what is not NaN, of two the lower."""
    return _median("nanmedian", input, dim, keepdim)


@takes_out
@needs_dtype_of_result
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Take the most frequent element along a dimension, of several the smallest."""
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _not_empty(input, (axis,), "mode")
    if input._array.ndim and input._array.size:
        refuse("mode", input._array.dtype)
    return return_mode(*_chosen(selecting.mode, input, dim, axis, keepdim))


@takes_out
@needs_dtype_of_result
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Take the k largest or smallest elements along a dimension, in order."""
    refuse("topk", input._array.dtype)
    axis = _errors.wrap_dim(dim, input._array.ndim)
    if not 0 <= k <= (input._array.shape[axis] if input._array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    params = {"k": k, "axis": axis, "largest": bool(largest)}
    return return_topk(*record(selecting.topk, (input,), params, None, {"dim": dim}))


@takes_out
@needs_dtype_of_result
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the smallest and the largest element; ties share the gradient."""
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
