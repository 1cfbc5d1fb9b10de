"""Unique elements, and membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray
from ..._core.numpy_namespace import is_half, raw_namespace
from ..._graph.node import PYTHON_SCALARS, Node
from ..._modes import current_mode
from ...overrides import overridable, takes_out
from .. import _base
from .._base import edge_of, wrap
from .._recording.flat import EXACT
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import promoted
from .._recording.refusals import kernel, refuse, refused

FEW_PAIRS = 4096  # up to which comparing all is quicker than sorting
refused("unique", "unique_dim", c=kernel("{name}"))


def _raw(tensor: Any, name: str) -> Any:
    """Return a tensor's own array; how many elements are unique depends on the data, so there is no batch of them."""
    array = tensor._array
    if isinstance(array, LevelArray):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"aten::{name}."
        )
    return array


def _rows(array: Any, axis: int) -> Any:
    """Return the slices of an array along an axis as rows of numbers."""
    return np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)


def _order(rows: Any) -> Any:
    """Return the order that sorts rows by their first number, then the second, and so on."""
    wide = rows.astype(np.float32) if is_half(rows.dtype) else rows
    return np.lexsort(wide.T[::-1]) if rows.shape[1] else np.arange(len(rows))


def _runs(rows: Any) -> Any:
    """Mark the first of each run of equal rows; NaN equals nothing."""
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return starts


def _along(tensor: Any, dim: int, sort: bool, name: str) -> tuple[Any, Any, Any]:
    """Return the unique slices along a dim, the index of each slice among them, and counts."""
    array = _raw(tensor, name)
    if not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = _errors.wrap_dim(dim, array.ndim)
    refuse("unique_dim", array.dtype)
    if not array.size:
        if array.shape[axis] or sum(n == 0 for n in array.shape) > 1:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        none = np.zeros(0, np.int64)
        return array.copy(), none, none
    rows = _rows(array, axis)
    order = _order(rows) if sort else np.arange(len(rows))
    starts = _runs(rows[order])
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(starts) - 1
    chosen = order[starts]
    slices = np.ascontiguousarray(np.moveaxis(array, axis, 0)[chosen])  # torch's memory: slice after slice
    return np.moveaxis(slices, 0, axis), inverse, np.bincount(inverse)


def _of_elements(tensor: Any, sort: bool, name: str, places: bool, counted: bool) -> tuple[Any, Any, Any]:
    """Return the unique elements, the index of each element among them if `places`, and counts if `counted`."""
    array = _raw(tensor, name)
    if array.dtype.kind == "c":
        refuse("unique", array.dtype)
    xp = raw_namespace(array).module
    flat = array.reshape(-1)
    order = None
    if sort and not places and not is_half(flat.dtype):
        flat = flat.copy()
        flat.sort()
    elif sort:
        order = (flat.astype(np.float32) if is_half(flat.dtype) else flat).argsort(kind="stable")
        flat = flat[order]
    starts = xp.ones(flat.shape, bool)
    starts[1:] = flat[1:] != flat[:-1]
    (begins,) = starts.nonzero()
    counts = xp.diff(begins, append=flat.size) if counted else None
    inverse = None
    if places:
        numbers = xp.cumsum(starts) - 1
        if order is not None:
            inverse = xp.empty(flat.shape, np.int64)
            inverse[order] = numbers
            numbers = inverse
        inverse = numbers.reshape(array.shape)
    return flat[begins], inverse, counts


class _UniqueNode(Node):
    """The node of an operation that torch records but cannot differentiate."""

    __slots__ = ()
    operation = ""

    def pull_back(self, g: Any, graph: bool) -> Any:
        raise NotImplementedError(f"the derivative for '{self.operation}' is not implemented.")


_NODES = {
    operation: type(name, (_UniqueNode,), {"__slots__": (), "operation": operation})
    for operation, name in (
        ("_unique2", "Unique2Backward0"),
        ("unique_dim", "UniqueDimBackward0"),
        ("unique_consecutive", "UniqueConsecutiveBackward0"),
    )
}


def _node(operation: str, edge: Any) -> Any:
    return _NODES[operation]().begin((edge,))


def _results(name: str, tensor: Any, found: tuple[Any, Any, Any], return_inverse: bool, return_counts: bool) -> Any:
    values = wrap(found[0])
    if current_mode().tracks and (edge := edge_of(tensor)) is not None and found[0].dtype.kind in "fV":
        values._edge = _node(name, edge)
    if not return_inverse and not return_counts:
        return values
    extra = [wrap(one) for one, wanted in zip(found[1:], (return_inverse, return_counts), strict=True) if wanted]
    return (values, *extra)


@overridable
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the distinct elements, or the distinct slices along a dimension.

    Args:
        input: a tensor
        sorted: whether the result is in ascending order; here it always is
        return_inverse: also return where each element is in the result
        return_counts: also return how often each occurs
        dim: compare slices along this dimension; without it, elements

    Example:
        >>> values, counts = torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        >>> values, counts
        (tensor([1, 3]), tensor([1, 2]))
    """
    name = "_unique2" if dim is None else "unique_dim"
    found = _found(input, dim, True, name, return_inverse, return_counts)
    return _results(name, input, found, return_inverse, return_counts)


def _found(tensor: Any, dim: int | None, sort: bool, name: str, places: bool, counted: bool) -> tuple[Any, Any, Any]:
    if dim is None:
        return _of_elements(tensor, sort, name, places, counted)
    return _along(tensor, dim, sort, name)


@overridable
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Remove elements, or slices, that equal the one before.

    Args:
        input: a tensor
        return_inverse: also return where each element is in the result
        return_counts: also return how long each run is
        dim: compare slices along this dimension; without it, elements

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    name = "unique_consecutive"
    found = _found(input, dim, False, name, return_inverse, return_counts)
    return _results(name, input, found, return_inverse, return_counts)


@takes_out
@needs_dtype_of_result
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Tell for each element whether it is among others; NaN is not.

    Args:
        elements: a tensor, or a number
        test_elements: a tensor, or a number
        assume_unique: both have no element twice
        invert: tell whether it is not

    Example:
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3]))
        tensor([False,  True,  True])
    """
    if type(elements) in EXACT and type(test_elements) in EXACT:
        ours, theirs = elements._array, test_elements._array
        alike = type(ours) is type(theirs) is np.ndarray and ours.dtype is theirs.dtype
        if alike and ours.dtype.kind in "iuf" and ours.size * theirs.size <= FEW_PAIRS:
            found = wrap(np.logical_or.reduce(ours[..., None] == theirs.reshape(-1), -1))
            return found.logical_not() if invert else found
    tensors = [one for one in (elements, test_elements) if isinstance(one, _base.Tensor)]
    for one in tensors:
        if one._array.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {_base.dtype_of(one)._scalar_name}")
    given = [one._array if isinstance(one, _base.Tensor) else one for one in (elements, test_elements)]
    cast, dtype = promoted(given)
    ours, theirs = (np.asarray(one, dtype) if type(one) in PYTHON_SCALARS else one for one in cast)
    if isinstance(ours, LevelArray) or isinstance(theirs, LevelArray):
        pairs = wrap(ours).reshape((*ours.shape, 1)) == wrap(theirs).reshape((1,) * ours.ndim + (theirs.size,))
        found = pairs.any(-1)
    elif ours.size * theirs.size <= FEW_PAIRS:
        found = wrap((ours[..., None] == theirs.reshape(-1)).any(-1))
    else:
        found = wrap(raw_namespace(ours).module.isin(ours, theirs))
    return found.logical_not() if invert else found
