"""Joining by shape: stacks of rows and columns, blocks, products, and tensors brought to a common shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors, _size
from ..._ops import rearrange as r
from ..._ops import shape as s
from ..._warnings import warn_once
from ...overrides import declared, overridable, overridable_as, takes_out
from .. import _base
from .._aliasing.views import view_op
from .._recording.record import record
from .joining import cat, in_common_dtype, need_tensors, stack
from .shape import expand, reshape, reshaped, sizes_from, unsqueeze


def _atleast(input: Any, ndim: int) -> Any:
    have = input._array.ndim
    if have >= ndim:
        return input
    if have == 0:
        return reshape(input, (1,) * ndim)
    if ndim == 3:
        return unsqueeze(unsqueeze(input, 0), -1) if have == 1 else unsqueeze(input, -1)
    return view_op(input, s.expand_dims, {"axis": 0}, "UnsqueezeBackward0", {"dim": 0})


def _for_one_or_several(name: str, ndim: int) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if not isinstance(tensors[0], (tuple, list)):
                return _atleast(tensors[0], ndim)
            tensors = tuple(tensors[0])
        return tuple([_atleast(one, ndim) for one in tensors])

    return overridable_as(name, function, f"View a tensor, or each of several, with at least {ndim} dimensions.")


atleast_1d = _for_one_or_several("atleast_1d", 1)
atleast_2d = _for_one_or_several("atleast_2d", 2)
atleast_3d = _for_one_or_several("atleast_3d", 3)


def _not_empty(name: str, tensors: Any) -> list[Any]:
    found = list(tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


@takes_out
def hstack(tensors: Any) -> Any:
    """Join tensors side by side: along dimension 1, of 1-d tensors along 0.

    Args:
        tensors: a sequence of tensors

    Example:
        >>> torch.hstack((torch.tensor([1, 2]), torch.tensor([3])))
        tensor([1, 2, 3])
    """
    rows = [_atleast(one, 1) for one in _not_empty("hstack", tensors)]
    return cat(rows, 0 if rows[0]._array.ndim == 1 else 1)


@takes_out
def vstack(tensors: Any) -> Any:
    """Join tensors on top of each other: 1-d tensors become rows.

    Args:
        tensors: a sequence of tensors

    Example:
        >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
        tensor([[1, 2],
                [3, 4]])
    """
    return cat([_atleast(one, 2) for one in _not_empty("vstack", tensors)], 0)


row_stack = vstack


@takes_out
def dstack(tensors: Any) -> Any:
    """Join tensors along a third dimension.

    Args:
        tensors: a sequence of tensors

    Example:
        >>> torch.dstack((torch.tensor([1, 2]), torch.tensor([3, 4]))).shape
        torch.Size([1, 2, 2])
    """
    return cat([_atleast(one, 3) for one in _not_empty("dstack", tensors)], 2)


@takes_out
def column_stack(tensors: Any) -> Any:
    """Join along columns: vectors are columns."""
    columns = []
    for one in _not_empty("column_stack", tensors):
        columns.append(reshaped(one, (one._array.size, 1)) if one._array.ndim < 2 else one)
    return cat(columns, 1)


@overridable
def block_diag(*tensors: Any) -> Any:
    """Put matrices along the diagonal of a larger one.

    Args:
        *tensors: tensors with at most two dimensions

    Example:
        >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    need_tensors(tensors, 0)
    if not tensors:
        return _base.wrap(np.zeros((1, 0), np.float32))
    for k, one in enumerate(tensors):
        if one._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{k} has {one._array.ndim} dimensions"
            )
    return record(r.block_diag, tensors, {"lead": 0}, "BlockDiagBackward0", None, in_common_dtype(tensors))


@overridable
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Return the coordinates of all points of a grid, one tensor for each axis.

    Args:
        *tensors: 1-d tensors, the coordinates on the axes
        indexing: "ij" for rows first, "xy" for columns first

    Example:
        >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
        >>> x, y
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for one in tensors:
        if one._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {_errors.sizes(one._array.shape)}"
            )
        if one._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    swapped = indexing == "xy" and len(tensors) > 1
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swapped else tensors
    shape = tuple([t._array.size for t in ordered])
    grids = []
    for k, one in enumerate(ordered):
        row = reshaped(one, (1,) * k + (shape[k],) + (1,) * (len(shape) - k - 1))
        grids.append(expand(row, shape))
    return (grids[1], grids[0], *grids[2:]) if swapped else tuple(grids)


@overridable
def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of elements, one of each tensor.

    Args:
        *tensors: 1-d tensors

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    for one in tensors:
        if one._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {_errors.sizes(one._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshaped(grid, (grid._array.size,)) for grid in meshgrid(*tensors, indexing="ij")], 1)


@overridable
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """List all choices of `r` elements of a vector."""
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {_errors.sizes(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return _base.wrap(np.zeros(0, input._array.dtype))
    grids = meshgrid(*[input] * r, indexing="ij")
    places = np.indices(tuple(grids[0]._array.shape))
    chosen = np.ones(places.shape[1:], bool)
    for k in range(r - 1):
        chosen &= places[k] <= places[k + 1] if with_replacement else places[k] < places[k + 1]
    mask = _base.wrap(chosen)
    return stack([grid.masked_select(mask) for grid in grids], 1)


@overridable
def broadcast_tensors(*tensors: Any) -> Any:
    """Expand tensors to the shape to which all of them broadcast.

    Args:
        *tensors: tensors

    Example:
        >>> a, b = torch.broadcast_tensors(torch.ones(3, 1), torch.ones(2))
        >>> a.shape, b.shape
        (torch.Size([3, 2]), torch.Size([3, 2]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    wide: tuple[int, ...] = ()
    for one in tensors:
        shape = tuple(one._array.shape)
        try:
            wide = np.broadcast_shapes(wide, shape)
        except ValueError:
            raise _errors.broadcast_error(wide, shape) from None
    return tuple([one if tuple(one._array.shape) == wide else expand(one, wide) for one in tensors])


@declared(seen=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape to which shapes broadcast.

    Args:
        *shapes: shapes, or sizes

    Example:
        >>> torch.broadcast_shapes((3, 1), (2,))
        torch.Size([3, 2])
    """
    found: list[int] = []
    given = []
    for shape in shapes:
        if isinstance(shape, int):
            shape = (shape,)
        elif not isinstance(shape, (tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
        given.append(tuple(shape))
    rank = max((len(shape) for shape in given), default=0)
    found = [1] * rank
    for k, shape in enumerate(given):
        for at in range(-1, -1 - len(shape), -1):
            if shape[at] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[at] in (1, found[at]):
                continue
            if found[at] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[at]} at {at}! Mismatching argument at index "
                    f"{k} had {shape}; but expected shape should be broadcastable to {found}"
                )
            found[at] = shape[at]
    return _size.Size(found)


@declared(forms="method spread")
def sum_to_size(input: Any, size: Any) -> Any:
    """Sum over dimensions so that the result has a size that would broadcast back."""
    wanted = sizes_from((size,))
    shape = tuple(input._array.shape)
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (1, shape[lead + k]) for k, n in enumerate(wanted)):
        raise RuntimeError(f"size {{{_errors.sizes(wanted)}}} is not expandable to size {{{_errors.sizes(shape)}}}.")
    if not wanted:
        return input.sum()  # of a tensor without dimensions, too, as torch's
    if wanted == shape:
        return input
    axes = tuple(k for k in range(len(shape)) if k < lead or (wanted[k - lead] == 1 and shape[k] != 1))
    total = input.sum(axes, True) if axes else input
    return total.view(wanted) if lead else total
