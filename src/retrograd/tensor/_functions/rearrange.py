"""Flipping, turning, shifting, repeating and padding: copies in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import Batched, is_meta
from ..._ops import rearrange as r
from ..._ops import shape as s
from ...overrides import declared, overridable
from .. import _base
from .._aliasing.views import own_memory
from .._base import dtype_of, wrap
from .._object.layout import laid_out_like
from .._recording.record import record
from .shape import flatten, reshape, sizes_from, unsqueeze

NDARRAY = np.ndarray


def _dims(given: Any, ndim: int) -> tuple[int, ...]:
    """Read dims that must differ."""
    axes = tuple([_errors.wrap_dim(d, ndim) for d in given])
    for k, axis in enumerate(axes):
        if axis in axes[:k]:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return axes


@overridable(forms="function method spread")
def flip(input: Any, dims: Any) -> Any:
    """Reverse the order of the elements along dimensions, as a copy.

    Args:
        input: a tensor
        dims: a dimension or several

    Example:
        >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (0,))
        tensor([[3, 4],
                [1, 2]])
    """
    given = sizes_from((dims,))
    axes = _dims(given, input._array.ndim)
    params = {"axis": axes if input._array.ndim else ()}
    return _ordered_as(record(s.flip, (input,), params, "FlipBackward0", {"dims": given}), input)


def _ordered_as(result: Any, input: Any) -> Any:
    """Give a result the order of strides of the input, as torch does."""
    if type(input._array) is NDARRAY and not input._array.flags.c_contiguous:
        result._array = laid_out_like(result._array, input._array)
    return result


@overridable
def fliplr(input: Any) -> Any:
    """Reverse the columns."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@overridable
def flipud(input: Any) -> Any:
    """Reverse the rows."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@overridable
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turn a tensor by 90 degrees in the plane of two dimensions.

    Args:
        input: a tensor
        k: how often; negative turns back
        dims: the two dimensions

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    ndim = input._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = (_errors.wrap_dim(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    shown = {"k": k, "dims": tuple(dims)}
    result = record(r.rot90, (input,), {"k": k % 4, "axis1": a, "axis2": b}, "Rot90Backward0", shown)
    array = input._array
    if k % 2 == 0:
        return _ordered_as(result, input)
    if type(array) is NDARRAY and not array.flags.c_contiguous:
        result._array = laid_out_like(result._array.swapaxes(a, b), array).swapaxes(a, b)
    return result


@overridable
def roll(input: Any, shifts: Any, dims: Any = ()) -> Any:
    """Move the elements along dimensions; what leaves at the end comes in at the beginning.

    Args:
        input: a tensor
        shifts: by how many places, a number for each dimension
        dims: the dimensions; without them, the flattened tensor

    Example:
        >>> torch.roll(torch.arange(5), 2)
        tensor([3, 4, 0, 1, 2])
    """
    by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    if not by:
        raise RuntimeError("`shifts` required")
    if len(given) != len(by) and not (len(by) == 1 and not given):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(given)}")
    ndim = input._array.ndim
    axes = None
    if given:
        if not ndim:
            raise IndexError(f"Dimension specified as {given[0]} but tensor has no dimensions")
        axes = tuple([_errors.wrap_dim(d, ndim) for d in given])
    return record(r.roll, (input,), {"shifts": by, "axes": axes}, "RollBackward0", {"shifts": by, "dims": given})


# ---- repeating ----
@declared(forms="method spread")
def repeat(input: Any, repeats: Any) -> Any:
    """Copy a tensor several times along each dimension.

    Args:
        repeats: how often along each dimension, one by one or in a sequence; new dimensions stand in front

    Example:
        >>> torch.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    counts = sizes_from((repeats,))
    shape = input._array.shape
    if len(counts) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return _tiled(input, counts)


def _tiled(input: Any, counts: tuple[int, ...]) -> Any:
    shape = (1,) * (len(counts) - input._array.ndim) + tuple(input._array.shape)
    wide = [n * c for n, c in zip(shape, counts, strict=True)]
    for n in wide:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {_errors.sizes(wide)}")
    return record(r.tile, (input,), {"counts": counts}, "RepeatBackward0", {"repeats": counts})


@overridable(forms="function method spread")
def tile(input: Any, dims: Any) -> Any:
    """Repeat a tensor along its last dimensions.

    Args:
        input: a tensor
        dims: how often along each dimension

    Example:
        >>> torch.tile(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    counts = sizes_from((dims,))
    return _tiled(input, (1,) * (input._array.ndim - len(counts)) + counts)


@overridable
def repeat_interleave(input: Any, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Repeat each element, or each slice along a dimension.

    Args:
        input: a tensor
        repeats: how often; a number, or one for each
        dim: the dimension; without it, the flattened tensor
        output_size: the size of the result, if it is known

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2, 3]), torch.tensor([1, 0, 2]))
        tensor([1, 3, 3])
    """
    if repeats is None:
        return _positions(input, output_size)
    if isinstance(repeats, int):
        total = repeats * (input._array.size if dim is None else input.size(dim) if input._array.ndim else 1)
        if output_size is not None and repeats >= 0 and int(output_size) != total:
            raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {total} but got {int(output_size)}")
        return _repeated(input, repeats, dim)
    given = repeats._array
    if given.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if dim is None:
        input, dim = flatten(input), 0
    d = _errors.wrap_dim(dim, input._array.ndim)
    size = input._array.shape[d] if input._array.ndim else 1
    if given.size == 1:
        repeats = reshape(repeats, (1,)).expand(size)
    elif given.size != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {given.size} and "
            f"input.size({d}) = {size}"
        )
    return input.index_select(d, _positions(repeats, output_size))


def _repeated(input: Any, count: int, dim: int | None) -> Any:
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        input, dim = flatten(input), 0
    ndim = input._array.ndim
    d = _errors.wrap_dim(dim, ndim)
    if not ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got {d + 1})")
    shape = list(input._array.shape)
    wide = unsqueeze(input, d + 1).expand(*shape[: d + 1], count, *shape[d + 1 :])
    copied = record(s.copy, (wide,), {}, "CloneBackward0")
    if type(copied._array) is not NDARRAY:
        copied._array = own_memory(copied._array)
    shape[d] *= count
    return copied.view(shape)


def _positions(repeats: Any, output_size: Any) -> Any:
    """List each position as often as it is to be repeated."""
    array = repeats._array
    if isinstance(array, Batched):
        rows = [_positions(wrap(row), output_size)._array for row in array.array]
        return wrap(Batched(array.level, np.stack(rows)))
    if array.dtype not in (np.int64, np.int32):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{dtype_of(repeats)._scalar_name}'")
    if is_meta(array):
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        return wrap(array.copy()[:1]).expand(output_size)
    if (array < 0).any():
        raise RuntimeError("repeats can not be negative")
    found = np.repeat(np.arange(array.size, dtype=array.dtype), array)
    if output_size is not None and output_size != found.size:
        raise RuntimeError("allocated size does not match required size")
    return wrap(found)


# ---- padding ----
@overridable
def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """Pad the last dimensions with a value, given before and after, from the last on; negative numbers crop."""
    pad = tuple(pad)
    shape = input._array.shape
    ndim = len(shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {ndim}dimensions."
        )
    before, after = [0] * ndim, [0] * ndim
    for k in range(len(pad) // 2):
        axis = ndim - 1 - k
        before[axis], after[axis] = pad[2 * k], pad[2 * k + 1]
        if shape[axis] + min(before[axis], 0) + min(after[axis], 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    if isinstance(value, _base.Tensor):
        value = value.item()
    if input._array.dtype.kind in "iu":
        value = int(value)
    params = {"before": tuple(before), "after": tuple(after), "value": value}
    return record(r.constant_pad, (input,), params, "ConstantPadNdBackward0", {"pad": pad})
