"""Views with any sizes and strides: as_strided, sliding windows, and tensors that change their size in place."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import Batched, Dual, LevelArray
from ..._core.numpy_namespace import raw_namespace
from ..._modes import current_mode
from ..._ops import strided
from ...overrides import overridable
from .._aliasing.entering import refuse_captured
from .._aliasing.inplace import reshaping
from .._aliasing.views import GRAD, register_view, view_op, wrote
from .._base import materialise, signed_types, storage_of
from .._object.formats import strides_in
from .._object.layout import dense_strides, geometry, strides
from .._recording.record import record
from .creation import unset, without_memory
from .shape import sizes_from


def place_of(tensor: Any) -> tuple[tuple[int, ...], int]:
    """Return a tensor's strides and offset; those of a dual number are its primal's."""
    array = materialise(tensor)
    if type(array) is np.ndarray and array.base is None and array.size:
        return strides(array), 0
    return geometry(tensor)


def _check_memory(tensor: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    """Raise torch's errors for an as_strided view of more memory than there is, or of more than a sample of vmap has."""
    array = tensor._array
    while isinstance(array, Dual):
        array = array.primal
    last, item = strided.last_place(size, stride), array.dtype.itemsize
    if isinstance(array, LevelArray):
        own_stride, own = place_of(tensor)
        behind = own + strided.last_place(array.shape, own_stride) + 1
        if offset < own or offset + last >= behind:
            raise RuntimeError(
                f"result = tensor.as_strided({_errors.sizes(size)}, {_errors.sizes(stride)}, {offset}) can access memory "
                f"outside of `tensor`. `result` can access some memory in range [{offset}, {offset + last + 1}], but "
                f"`tensor` can only access some memory in range [{own}, {behind}]. This is not supported inside of vmap, "
                "please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
            )
        return
    needed, have = (offset + last + 1) * item, int(strided.whole_memory(array).nbytes)
    if needed > have:
        raise RuntimeError(
            f"setStorage: sizes {_errors.sizes(size)}, strides {_errors.sizes(stride)}, storage offset {offset}, "
            f"and itemsize {item} requiring a storage size of {needed} are out of bounds for storage of size {have}"
        )


def checked(
    tensor: Any, size: Any, stride: Any, storage_offset: Any, own_offset: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes, strides and offset of an as_strided view, with torch's errors."""
    size, stride = tuple([index(n) for n in size]), tuple([index(n) for n in stride])
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    for step in stride:
        if step < 0:
            raise RuntimeError(
                f"as_strided: Negative strides are not supported at the moment, got strides: {_errors.sizes(stride)}"
            )
    for n in size:
        if n < 0:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={_errors.sizes(size)} and "
                f"strides={_errors.sizes(stride)}"
            )
    offset = own_offset if storage_offset is None else index(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in size:
        _check_memory(tensor, size, stride, offset)
    return size, stride, offset


def row_params(
    tensor: Any, place: tuple[tuple[int, ...], int], size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> dict[str, Any]:
    """Return the parameters by which `restride` makes an as_strided view of a tensor that lies at a place."""
    in_stride, in_offset = place
    row = strided.storage_row(tuple(tensor._array.shape), in_stride, in_offset, size, stride, offset)
    return {"in_stride": in_stride, "size": size, "stride": stride, **row}


def _is_inside(array: Any, size: Any, stride: Any, offset: Any) -> bool:
    """Tell quickly that there is nothing to refuse: some elements of dense memory that the array itself owns."""
    if (
        type(array) is not np.ndarray
        or array.base is not None
        or not array.flags.c_contiguous
        or not type(size) is type(stride) is tuple
        or len(size) != len(stride)
        or type(offset) is not int
        or offset < 0
    ):
        return False
    last = offset
    for n, step in zip(size, stride, strict=True):
        if not type(n) is type(step) is int or n < 1 or step < 0:
            return False
        last += (n - 1) * step
    return bool(last < array.size)


@overridable
def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """View the tensor's storage with any sizes and strides."""
    if type(input) in signed_types:
        from .._aliasing.signs import of_memory

        return of_memory(input, lambda stored: as_strided(stored, size, stride, storage_offset))
    offset = 0 if storage_offset is None else storage_offset
    extra = input._extra
    if (extra is None or extra.view is None) and _is_inside(input._array, size, stride, offset):
        dense = tuple([n // input._array.itemsize for n in input._array.strides])
        params = {"size": size, "stride": stride, "offset": offset, "in_stride": dense, "in_offset": 0}
        shown = {"size": size, "stride": stride, "storage_offset": storage_offset}
        result = record(strided.as_strided, (input,), params, "AsStridedBackward0", shown)
        row = {"in_stride": dense, "size": size, "stride": stride, "start": 0, "offset": offset}
        row["length"] = input._array.size
        register_view(input, result, ((strided.restride, row),), current_mode())
        return result
    place = place_of(input)
    size, stride, offset = checked(input, size, stride, storage_offset, place[1])
    params = {"size": size, "stride": stride, "offset": offset, "in_stride": place[0], "in_offset": place[1]}
    shown = {"size": size, "stride": stride, "storage_offset": storage_offset}
    result = record(strided.as_strided, (input,), params, "AsStridedBackward0", shown)
    view = None if input._extra is None else input._extra.view
    base = input
    if view is not None:  # from the base: the view may show places of the storage that its source does not
        base = view.base
        place = place_of(base)
    steps = ((strided.restride, row_params(base, place, size, stride, offset)),)
    register_view(base, result, steps, current_mode())
    if view is not None and result._extra is not None and result._extra.view.made_in == GRAD:
        result._extra.view.made_in = view.made_in
    return result


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """View all windows along a dimension; they become the last dimension.

    Args:
        dimension: the dimension
        size: how long a window is
        step: how far the next one is

    Example:
        >>> torch.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    shape = input._array.shape
    d = _errors.wrap_dim(dimension, len(shape))
    longest = shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {longest} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    params = {"axis": d, "size": size, "step": step}
    shown = {"dimension": dimension, "size": size, "step": step}
    return view_op(input, strided.unfold, params, "UnfoldBackward0", shown)


# ---- changing size in place ----
def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Change the size in place; the elements in memory stay, new ones are not set."""
    if not size:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    wanted = sizes_from(size)
    refuse_captured(self, "resize_")
    if self._edge is not None and not current_mode().inference:
        raise RuntimeError("cannot resize variables that require grad")
    if any(n < 0 for n in wanted):
        raise RuntimeError("numel: integer multiplication overflow")
    stride = dense_strides(wanted) if memory_format is None else strides_in(wanted, memory_format)
    if tuple(self._array.shape) == wanted and memory_format is None:
        return self
    array = materialise(self)
    if isinstance(array, Dual):
        raise RuntimeError("cannot resize variables that has a forward grad")
    self._array = _resized(array, wanted, stride, geometry(self)[1])
    storage_of(self)
    wrote(self)
    return self


def _resized(array: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """Read memory with another size; torch reads that of a batch as a whole, so samples get other elements."""
    if isinstance(array, Batched):
        size = (array.level.size, *size)
        return Batched(array.level, _resized(array.array, size, dense_strides(size), 0))
    xp = raw_namespace(array)
    row = strided.memory_row(xp, strided.whole_memory(array), array.dtype)
    missing = offset + strided.last_place(size, stride) + 1 - row.size
    if missing > 0:
        row = np.concatenate((row, without_memory(missing, array.dtype) if xp.is_meta else unset(missing, array.dtype)))
    return strided.read_row(xp, row, size, stride, offset)


def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the size in place to that of another tensor."""
    return resize_(self, tuple(the_template._array.shape), memory_format=memory_format)


as_strided_ = reshaping("as_strided", as_strided)
