"""Indexing: x[...], x[...] = v, gather, scatter and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray, is_meta
from ..._core.numpy_namespace import ARRAY, fill_layout
from ..._graph.node import PYTHON_SCALARS
from ..._modes import current_mode
from ..._ops import index as ops
from ..._ops.shape import expand_dims
from ..._tracebacks import hide
from ..._warnings import warn
from ...overrides import arguments, handle_torch_function, overridable, refuse_other_torch, taken_by_others
from .. import _base
from .._aliasing.entering import refuse_captured
from .._aliasing.inplace import copy_into, fill_with
from .._aliasing.item_writes import write_at_once, write_number
from .._aliasing.views import adopt, check_inplace, view_op
from .._base import wrap
from .._object.layout import ordered, output_order, refuse_overlap, repeats
from .._object.numbers import element_of
from .._recording.flat import EXACT
from .._recording.record import laid_out, record
from .creation import tensor as make
from .shape import alias, expand, unsqueeze

NDARRAY = np.ndarray
OF_BYTES = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
INT64, INT32, BOOL = np.dtype(np.int64), np.dtype(np.int32), np.dtype(bool)


class _Parts:
    """An index expression, taken apart: basic steps first, then index arrays (`layout` says where they stand)."""

    __slots__ = ("arrays", "given", "layout", "view")

    def __init__(self, view: Any, arrays: list[Any], layout: list[Any], given: list[Any]) -> None:
        self.view = view
        self.arrays = arrays
        self.layout = layout
        self.given = given  # the index tensors as the node shows them, None for dimensions not indexed


def _is_advanced(part: Any) -> bool:
    return isinstance(part, (_base.Tensor, list, np.ndarray, tuple, range)) and not (
        isinstance(part, _base.Tensor)
        and part._array.ndim == 0
        and part._array.dtype.kind in "iu"
        and not isinstance(part._array, LevelArray)
    )


def _normalise(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return index
    nested = (slice, type(None), type(Ellipsis), list, tuple, np.ndarray, _base.Tensor)
    if isinstance(index, list) and len(index) < 32 and any(isinstance(p, nested) for p in index):
        return tuple(index)  # torch's rule: a list that holds more than numbers stands for a tuple
    return (index,)


def _dims_used(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    if isinstance(part, _base.Tensor) and part._array.dtype.kind == "b":
        return int(part._array.ndim)
    if isinstance(part, np.ndarray) and part.dtype.kind == "b":
        return part.ndim
    return 1


def _take_apart(tensor: Any, index: Any, reading: bool = True) -> _Parts:
    """Apply ints, slices, None and Ellipsis as views, as torch does, and collect the index arrays that remain."""
    parts = tuple(bool(part._array) if _zero_dim_mask(part) else part for part in _normalise(index))
    used = sum(_dims_used(part) for part in parts)
    ndim = tensor._array.ndim
    if used > ndim:
        _refuse_dims(index, ndim)
    result = tensor
    dim = 0
    arrays: list[Any] = []
    layout: list[Any] = []
    given: list[Any] = []
    seen_ellipsis = False
    whole = reading and isinstance(index, slice)  # x[:] is a view, in x[:, 0] the full slice is nothing

    for place, part in enumerate(parts):
        if (isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_))) or _zero_dim_integer(part):
            result = _select(result, dim, int(part), place)
            continue
        if part is Ellipsis:
            skip = 0 if seen_ellipsis else ndim - used  # torch lets a second one pass
            seen_ellipsis = True
            layout += [slice(None)] * skip
            given += [None] * skip
            dim += skip
            continue
        if isinstance(part, slice):
            result = _slice(result, dim, part, whole)
            found: list[Any] = []
        elif part is None:
            result = unsqueeze(result, dim)
            found = []
        elif isinstance(part, (bool, np.bool_)):
            result = unsqueeze(result, dim)
            found = [np.arange(1 if part else 0)]
            part = wrap(found[0])
        elif _is_advanced(part):
            part = _as_index(part)
            found = _index_arrays(part, result, dim, len(arrays))
        elif isinstance(part, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            refuse_other_torch((part,))
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                f"{type(part).__name__})"
            )
        given.append(part if found else None)
        arrays += found
        layout += [ARRAY] * len(found) or [slice(None)]
        dim += len(found) or 1
    return _Parts(result, arrays, layout, given)


def _places(index: Any) -> tuple[Any, ...]:
    return index if type(index) is tuple else (index,)


def _refuse_dims(index: Any, ndim: int) -> None:
    if ndim == 0 and isinstance(index, slice):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if ndim == 0 and isinstance(index, int):
        if index != 0:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    raise IndexError(f"too many indices for tensor of dimension {ndim}")


def _zero_dim_integer(part: Any) -> bool:
    return isinstance(part, _base.Tensor) and not _is_advanced(part)


def _zero_dim_mask(part: Any) -> bool:
    """Tell whether an index is one truth value: it takes all of the dimensions after it, or nothing."""
    if not isinstance(part, _base.Tensor) or isinstance(part._array, LevelArray):
        return False
    return not part._array.ndim and bool(part._array.dtype.kind == "b" or part._array.dtype == np.uint8)


def _select(tensor: Any, dim: int, position: int, place: int) -> Any:
    """View one position; messages count dimensions by their place in the index."""
    size = tensor._array.shape[dim]
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for dimension {place} with size {size}")
    at = position + size if position < 0 else position
    shown = {"dim": dim, "index": position}
    return view_op(tensor, ops.getitem, {"index": (slice(None),) * dim + (at,)}, "SelectBackward0", shown)


LAST = (1 << 63) - 1  # torch's end of an open slice


def _within(position: int, size: int) -> int:
    """Bring an end of a slice, which may count from behind, into a dimension."""
    if position < 0:
        position += size
        return position if position > 0 else 0
    return position if position < size else size


def _slice(tensor: Any, dim: int, part: slice, always: bool) -> Any:
    start, stop, step = part.start, part.stop, part.step
    start = 0 if start is None else int(start)
    stop = LAST if stop is None else int(stop)
    step = 1 if step is None else int(step)
    if step <= 0:
        raise ValueError("slice step cannot be zero" if step == 0 else "step must be greater than zero")
    size = tensor._array.shape[dim]
    if not always and start == 0 and stop >= size and step == 1:
        return tensor
    first, last = _within(start, size), _within(stop, size)
    shown = {"dim": dim, "start": start, "end": stop, "step": step}
    index = (*(slice(None),) * dim, slice(first, last if last > first else first, step))
    return view_op(tensor, ops.getitem, {"index": index}, "SliceBackward0", shown)


def _as_index(part: Any) -> Any:
    """Make the tensor that torch makes of an index: a list becomes int64, or a mask if it holds bools; integers of arrays int64, too."""
    if isinstance(part, _base.Tensor):
        return part
    if isinstance(part, np.ndarray):
        return wrap(part.astype(np.int64) if part.dtype.kind in "iu" and part.dtype != np.uint8 else part)
    array = make(list(part))._array if len(part) else np.zeros(0, np.int64)
    return wrap(array.astype(np.int64) if array.dtype.kind == "f" and array.size == 0 else array)


def _index_arrays(part: Any, target: Any, dim: int, place: int) -> list[Any]:
    """Turn an index tensor into integer arrays: a mask gives one for each dimension it covers.

    Messages count the indexed dimensions alone: `place` is the number of arrays before.
    """
    array = part._array
    if array.dtype.kind == "b" or array.dtype == np.uint8:
        if isinstance(array, LevelArray):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                "indexing with a boolean mask.\nHint: torch.where(mask, x, 0) keeps the shape."
            )
        if array.dtype == np.uint8:
            warn(OF_BYTES)
        for k, n in enumerate(array.shape):
            have = target._array.shape[dim + k]
            if n != have:
                raise IndexError(
                    f"The shape of the mask {_errors.sizes(array.shape)} at index {k} does not match the shape of the "
                    f"indexed tensor {_errors.sizes(target._array.shape)} at index {dim + k}"
                )
        return list(array.nonzero()) if array.ndim else [array.reshape(1).nonzero()[0]]
    if array.dtype is not INT64 and array.dtype not in (INT64, INT32):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if not isinstance(array, LevelArray):
        size = target._array.shape[dim]
        if array.size and not is_meta(array) and (array.min() < -size or array.max() >= size):
            bad = first_outside(array, -size, size)
            raise IndexError(f"index {bad} is out of bounds for dimension {place} with size {size}")
    return [array]


def first_outside(array: Any, low: int, high: int) -> int:
    """Return the first index that is not in [low, high), to be named in an error: so that numbers may be read that are recorded."""
    recording = current_mode().recording
    numbers = array if recording is None else recording.shown(array)
    return int(numbers[(numbers < low) | (numbers >= high)].flat[0])


def _trimmed(layout: list[Any]) -> tuple[Any, ...]:
    while layout and layout[-1] is not ARRAY:
        layout.pop()
    return tuple(layout)


def getitem(self: Any, index: Any) -> Any:
    """Read at an index: a view for ints, slices, None and Ellipsis, a copy for index arrays."""
    try:
        array = self._array
        if type(array) is NDARRAY:  # the common indices first
            kind = type(index)
            if kind is int and array.ndim:
                size = array.shape[0]
                if -size <= index < size:
                    params = {"index": (index + size if index < 0 else index,)}
                    return view_op(self, ops.getitem, params, "SelectBackward0", {"dim": 0, "index": index})
            elif kind is slice and array.ndim:
                return _slice(self, 0, index, True)
            elif kind is tuple:
                used = _basic_dims(index)
                if used is None:
                    parts = _slices_and_arrays(self, index)
                    if parts is not None:
                        return _unchecked_read(parts, self, index)
                elif used <= array.ndim:
                    view = _basic_views(self, index, used)
                    return alias(self) if view is self else view
            elif kind in EXACT:
                at = index._array
                if type(at) is NDARRAY and at.dtype is INT64 and at.ndim and array.ndim and array.size:
                    return _read_slices(self, index)
                parts = _slices_and_arrays(self, (index,))
                if parts is not None:
                    return _unchecked_read(parts, self, index)
            elif index is None:
                return _new_dim(self, 0)
            elif index is Ellipsis:
                return alias(self)
        try:
            parts = _take_apart(self, index)
        except IndexError:
            if taken_by_others((index,), {}):
                return handle_torch_function(_base.Tensor.__getitem__, _places(index), self, index)
            raise
        if not parts.arrays:
            return alias(self) if parts.view is self else parts.view
        _check_broadcast(parts.arrays)
        return _advanced_read(parts)
    except Exception as error:
        hide(error)
        raise


def _slices_and_arrays(tensor: Any, index: tuple[Any, ...]) -> _Parts | None:
    """Take an index of slices, int64 arrays and masks apart, without a look at the values; None if there is more to it."""
    parts = _Parts(tensor, [], [], [])
    shape = tensor._array.shape
    dim, ndim = 0, len(shape)
    if not tensor._array.size:
        return None
    for part in index:
        if dim >= ndim:
            return None
        if type(part) is slice:
            parts.view = _slice(parts.view, dim, part, False)
            parts.layout.append(slice(None))
            parts.given.append(None)
            dim += 1
            continue
        if type(part) not in EXACT or type(array := part._array) is not NDARRAY or not array.ndim:
            return None
        if array.dtype is INT64:
            parts.arrays.append(array)
            found = 1
        elif array.dtype is BOOL and array.shape == shape[dim : dim + array.ndim]:
            parts.arrays += array.nonzero()
            found = array.ndim
        else:
            return None
        parts.layout += [ARRAY] * found
        parts.given.append(part)
        dim += found
    return parts


def _unchecked_read(parts: _Parts, tensor: Any, index: Any) -> Any:
    """Read at arrays that nobody has looked at: NumPy does, and then the long way says what is wrong."""
    try:
        return _advanced_read(parts)
    except IndexError:
        _check_broadcast(_take_apart(tensor, index).arrays)
        raise


_FIRST = (ARRAY,)


def _read_slices(tensor: Any, index: Any) -> Any:
    """Read at one array of int64, which NumPy checks; then the long way says what is wrong."""
    array, at = tensor._array, index._array
    try:
        result = record(ops.index, (tensor, at), {"layout": _FIRST}, "IndexBackward0", {"indices": (index,)})
    except IndexError:
        _take_apart(tensor, index)
        raise
    if array.ndim > 1 or at.ndim > 1:
        if array.flags.c_contiguous and at.flags.c_contiguous:
            result._array = laid_out(result._array)
        else:
            result._array = _indexed_layout(result._array, array, [at], [ARRAY])
    return result


def _basic_dims(index: tuple[Any, ...]) -> int | None:
    """Count the dimensions that ints and slices use; None if there is anything else than those, None and an Ellipsis."""
    used, seen = 0, False
    for part in index:
        if type(part) is int or type(part) is slice:
            used += 1
        elif part is Ellipsis and not seen:
            seen = True
        elif part is not None:
            return None
    return used


def _basic_views(tensor: Any, index: tuple[Any, ...], used: int) -> Any:
    """View at ints, slices, None and an Ellipsis."""
    result, dim = tensor, 0
    for place, part in enumerate(index):
        if type(part) is int:
            result = _select(result, dim, part, place)
            continue
        if part is Ellipsis:
            dim += tensor._array.ndim - used
            continue
        result = _new_dim(result, dim) if part is None else _slice(result, dim, part, False)
        dim += 1
    return result


def _new_dim(tensor: Any, dim: int) -> Any:
    return view_op(tensor, expand_dims, {"axis": dim}, "UnsqueezeBackward0", {"dim": dim})


def _advanced_read(parts: _Parts) -> Any:
    layout = _trimmed(parts.layout)
    shown = {"indices": _shown_indices(parts.given)}
    args = (parts.view, *parts.arrays)
    result = record(ops.index, args, {"layout": layout}, "IndexBackward0", shown)
    array = result._array
    if type(array) is NDARRAY and array.ndim > 1 and array.size:
        for one in (parts.view._array, *parts.arrays):
            if not one.flags.c_contiguous:
                result._array = _indexed_layout(array, parts.view._array, parts.arrays, parts.layout)
                break
        else:
            result._array = laid_out(array)
    return result


def _indexed_layout(array: Any, source: Any, arrays: list[Any], layout: list[Any]) -> Any:
    """Lay the result of an index out as torch: it walks the source with strides 0 along the index's dimensions."""
    places = [k for k, part in enumerate(layout) if part is ARRAY]
    first = places[0] if places[-1] - places[0] == len(places) - 1 else 0  # apart: they move to the front
    rest = [k for k in range(source.ndim) if k not in places]
    wide = np.broadcast_shapes(*[tuple(a.shape) for a in arrays])
    before = [source.strides[k] for k in rest[:first]]
    after = [source.strides[k] for k in rest[first:]]
    operands = [(*before, *([0] * len(wide)), *after)]
    for one in arrays:
        operands.append((*([0] * len(before)), *np.broadcast_to(one, wide).strides, *([0] * len(after))))
    return ordered(array, output_order(array.shape, operands))


def _shown_indices(given: list[Any]) -> tuple[Any, ...]:
    while given and given[-1] is None:
        given.pop()
    return tuple(given)


def _check_broadcast(arrays: list[Any]) -> None:
    try:
        np.broadcast_shapes(*[tuple(a.shape) for a in arrays])
    except ValueError:
        shapes = ", ".join(_errors.sizes(a.shape) for a in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def setitem(self: Any, index: Any, value: Any) -> None:
    """Write at an index."""
    try:
        if write_at_once(self, index, value):
            return
        places = _places(index)
        used = _basic_dims(places)
        if type(self._array) is NDARRAY and used is not None and used <= self._array.ndim:
            target = _basic_views(self, places, used)
            if write_number(self, target, value):
                return
            parts = _Parts(target, [], [], [])
        else:
            try:
                parts = _take_apart(self, index, reading=False)
            except IndexError:
                if taken_by_others(places, {}):
                    handle_torch_function(_base.Tensor.__setitem__, places, self, index, value)
                    return
                raise
        if not isinstance(value, _base.Tensor) and type(value) not in PYTHON_SCALARS and taken_by_others((value,), {}):
            handle_torch_function(_base.Tensor.__setitem__, (value,), self, index, value)
            return
        target = parts.view
        if target is not self and target._storage.views:
            target._storage.forget_last_view(target)  # nobody will see it: no need for a new node after the write
        if type(value) in PYTHON_SCALARS:
            value = wrap(element_of(value, target._array.dtype, loosely=True))
        elif not isinstance(value, _base.Tensor):
            if isinstance(value, (list, np.ndarray)):
                value = make(value)
            elif isinstance(value, (np.generic, *PYTHON_SCALARS)):
                value = wrap(np.asarray(value).astype(target._array.dtype))
            else:
                raise TypeError(
                    f"can't assign a {arguments().type_name(value)} to a {_errors._TYPE_NAMES[_base.dtype_of(target).name]}\nHint: a "
                    "number or a tensor can be written; torch.tensor(...) makes one of a list."
                )
        if parts.arrays:
            put_in_place(target, parts.arrays, _trimmed(parts.layout), _stripped(value), False, parts.given)
            return
        refuse_captured(target, "copy_")
        if not value._array.ndim and target._array.ndim:
            fill_with(target, value)
        else:
            if value._array.shape != target._array.shape:
                value = _stripped(value, always=True)
                value = value if value.shape == target.shape else expand(value, target.shape)
            copy_into(target, value)
    except Exception as error:
        hide(error)
        raise


def _stripped(value: Any, always: bool = False) -> Any:
    """Drop the leading dimensions of size one of a value, as torch does, by a view (`always`: even where there are none)."""
    shape = tuple(value._array.shape)
    kept = shape
    while kept and kept[0] == 1:
        kept = kept[1:]
    return value if kept == shape and not always else value.view(kept)


def _scalar(tensor: Any) -> str:
    return _base.dtype_of(tensor)._scalar_name


def put_in_place(
    tensor: Any, arrays: list[Any], layout: tuple[Any, ...], value: Any, accumulate: bool, given: list[Any]
) -> Any:
    """Write `value` at index arrays into `tensor`."""
    check_inplace(tensor, (value,), "index_put_")
    if repeats(tensor._array):
        warn(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
            "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor"
        )
    if not current_mode().saved_hooks:
        _check_source(tensor, value, given, accumulate)
    result = index_put_record(tensor, arrays, layout, value, accumulate, given)
    if current_mode().saved_hooks:  # torch packs first, then looks
        _check_source(tensor, value, given, accumulate)
    return adopt(tensor, result)


def _check_source(tensor: Any, value: Any, given: list[Any], accumulate: bool) -> None:
    """Raise torch's errors for the dtype and memory of what is written at indices."""
    masks = [one for one in given if one is not None]
    only_mask = len(masks) == 1 and masks[0]._array.dtype.kind == "b" and value._array.size == 1 and not accumulate
    if not only_mask:  # else torch fills
        _check_source_dtype(tensor, value)
        for source in (value, *masks):
            refuse_overlap(tensor._array, source._array, same=True)


def _check_source_dtype(tensor: Any, value: Any) -> None:
    if value._array.dtype != tensor._array.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{_scalar(tensor)} for the destination and {_scalar(value)} for the source."
        )


def index_put_record(
    tensor: Any, arrays: list[Any], layout: tuple[Any, ...], value: Any, accumulate: bool, given: list[Any]
) -> Any:
    """Return `tensor` with `value` written at index arrays."""
    _check_broadcast(arrays)
    wanted = _result_shape(tensor, arrays, layout)
    shape = tuple(value._array.shape)
    try:
        fits = np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {_errors.sizes(shape)} cannot be broadcast to indexing result of "
            f"shape {_errors.sizes(wanted)}"
        )
    params = {"layout": layout, "accumulate": accumulate}
    shown = {"accumulate": accumulate, "indices": _shown_indices(given)}
    return record(ops.index_put, (tensor, value, *arrays), params, "IndexPutBackward0", shown)


def _result_shape(tensor: Any, arrays: list[Any], layout: tuple[Any, ...]) -> tuple[int, ...]:
    probe = np.broadcast_to(np.zeros((), bool), tuple(tensor._array.shape))
    # only the shapes of indices matter, but a mask's values, too
    standins = [a if type(a) is NDARRAY else np.zeros(tuple(a.shape), np.int64) for a in arrays]
    return tuple(probe[fill_layout(layout, tuple(standins))].shape)


def _index_tuple(tensor: Any, indices: Any) -> tuple[list[Any], tuple[Any, ...], list[Any]]:
    arrays: list[Any] = []
    layout: list[Any] = []
    given = [part if part is None else _as_index(part) for part in indices]
    dim = 0
    for part in given:
        found = [] if part is None else _index_arrays(part, tensor, dim, len(arrays))
        arrays += found
        layout += [ARRAY] * len(found) or [slice(None)]
        dim += len(found) or 1
    return arrays, tuple(layout), given


def index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write values at index tensors in place."""
    if not accumulate and type(indices) is tuple and write_at_once(self, indices, values):
        return self
    try:
        arrays, layout, given = _index_tuple(self, indices)
    except IndexError as error:
        check_inplace(self, (values,))  # torch looks at the indices last
        if "out of bounds" in str(error):
            refuse_overlap(self._array, values._array, same=True)
        raise
    return put_in_place(self, arrays, layout, values, accumulate, given)


@overridable
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write values at positions given by index tensors, into a copy.

    Args:
        input: a tensor
        indices: a tuple of index tensors, one for each of the first dimensions
        values: what is written; it broadcasts
        accumulate: add to what is there, also several times

    Example:
        >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 0, 2]),), torch.ones(3), accumulate=True)
        tensor([2., 0., 1.])
    """
    if len(indices) == 1 and type(indices[0]) in EXACT and type(values) in EXACT:
        own, at, given_values = input._array, indices[0]._array, values._array
        if (
            type(own) is type(at) is NDARRAY
            and at.dtype is INT64
            and own.dtype is given_values.dtype
            and 0 < at.size < 16
            and own.ndim
            and given_values.shape == (*at.shape, *own.shape[1:])
        ):
            numbers, size = at.ravel().tolist(), own.shape[0]
            if min(numbers) >= -size and max(numbers) < size:  # nothing to refuse
                params = {"layout": (ARRAY,), "accumulate": accumulate}
                shown = {"accumulate": accumulate, "indices": tuple(indices)}
                return record(ops.index_put, (input, values, at), params, "IndexPutBackward0", shown)
    arrays, layout, given = _index_tuple(input, indices)
    _check_source_dtype(input, values)
    return index_put_record(input, arrays, layout, values, accumulate, given)
