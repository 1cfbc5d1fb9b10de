"""Sorting."""

from __future__ import annotations

from typing import Any

from .. import _errors
from .._ops import index as i
from ..overrides import overridable
from ._layout import laid_out_like
from ._record import record
from ._reductions import return_sort
from ._refusals import refuse


@overridable
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """Sort along a dimension; returns values and indices."""
    refuse("sort", input._array.dtype)
    axis = _errors.wrap_dim(dim, input._array.ndim)
    params = {"axis": axis, "descending": bool(descending), "stable": True}
    name = "SortBackward0" if stable is None else "SortBackward1"
    values, indices = record(i.sort, (input,), params, name, {"dim": dim})
    for result in (values, indices):
        result._array = laid_out_like(result._array, input._array)
    return return_sort(values, indices)


@overridable
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the indices that sort along a dimension."""
    refuse("sort", input._array.dtype)
    if input.requires_grad:  # torch records a sort, which saved-tensor hooks see
        return sort(input, dim, descending)[1]
    axis = _errors.wrap_dim(dim, input._array.ndim)
    result = record(i.argsort, (input,), {"axis": axis, "descending": bool(descending), "stable": True}, None)
    result._array = laid_out_like(result._array, input._array)
    return result
