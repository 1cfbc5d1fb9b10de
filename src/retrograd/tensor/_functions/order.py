"""Sorting."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._dtypes import holds_complex
from ..._ops import order
from ...overrides import overridable, takes_out
from .._object.layout import laid_out_like
from .._object.return_types import make, named
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import NDARRAY, record
from .._recording.refusals import refuse, refused

return_sort = make("sort", "values", "indices")


def _sorted(input: Any, dim: int, descending: bool, node: str) -> Any:
    array = input._array
    if holds_complex(array.dtype):
        refuse("sort", array.dtype)
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    params = {"axis": axis, "descending": bool(descending)}
    results = record(order.sort, (input,), params, node, {"dim": dim})
    if type(array) is not NDARRAY or not array.flags.c_contiguous:
        for result in results:
            result._array = laid_out_like(result._array, array)
    return named(return_sort, results)


refused("sort", c=(RuntimeError, "Sort does not support complex dtypes on CPU"))


@takes_out
@needs_dtype_of_result
def sort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """Sort along a dimension, and return the elements and where they were.

    Args:
        input: a tensor
        dim: the dimension; the last by default
        descending: the largest first
        stable: keep the order of equal elements; here they do, asked for or not

    Example:
        >>> values, indices = torch.sort(torch.tensor([3.0, 1.0, 2.0]))
        >>> values, indices
        (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    return _sorted(input, dim, descending, "SortBackward0" if stable is None else "SortBackward1")


@overridable
def argsort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """Return the indices that sort along a dimension.

    Args:
        input: a tensor
        dim: the dimension; the last by default
        descending: the largest first
        stable: keep the order of equal elements

    Example:
        >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]), descending=True)
        tensor([0, 2, 1])
    """
    if input.requires_grad:  # torch records a sort, which saved-tensor hooks see
        return sort(input, dim, descending)[1]
    refuse("sort", input._array.dtype)
    axis = _errors.wrap_dim(dim, input._array.ndim)
    result = record(order.argsort, (input,), {"axis": axis, "descending": bool(descending)}, None)
    result._array = laid_out_like(result._array, input._array)
    return result


@takes_out
@needs_dtype_of_result
def msort(input: Any) -> Any:
    """Sort along the first dimension."""
    return _sorted(input, 0, False, "SortBackward0")[0]
