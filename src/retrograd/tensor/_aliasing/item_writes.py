"""Numbers and tensors written at an index without detours: into memory that no graph follows, and numbers into views."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._modes import PLAIN, read_mode
from ..._ops.shape import overwrite
from .._base import wrap
from .._recording.flat import EXACT
from .inplace import write_node
from .views import check_inplace, finish_write
from .writers import F32, F64, INT64, NDARRAY, memory_to_write, value_beside

BOOL = np.dtype(bool)


def write_at_once(tensor: Any, index: Any, value: Any) -> bool:
    """Write a number or a tensor at ints and slices where no graph follows; tell whether that was possible."""
    array = memory_to_write(tensor)
    if array is None or array.dtype.kind != "f" or array.itemsize == 2:
        return False
    if type(value) is float or type(value) is int:
        if not -1e38 < value < 1e38:
            return False  # the long way looks whether it fits
    else:
        value = value_beside(array, value)
        if value is None or value is array or value.dtype is not array.dtype:
            return False
    place = _numpy_index(index if type(index) is tuple else (index,))
    if place is None:
        return False
    try:
        array[place] = value
    except (IndexError, ValueError, TypeError):
        return False  # the long way explains
    finish_write(tensor, None)
    return True


def write_number(tensor: Any, target: Any, value: Any) -> bool:
    """Write a number into a view of a dense tensor that is in the graph; tell whether that was possible."""
    array = tensor._array
    if read_mode() is not PLAIN or target is tensor or type(tensor) not in EXACT or not array.flags.carray:
        return False
    if array.dtype is not F32 and array.dtype is not F64:
        return False
    if type(value) is float and -1e38 < value < 1e38:
        value = wrap(array.dtype.type(value))
    elif type(value) not in EXACT or type(value._array) is not array.dtype.type:  # a value without memory
        return False
    storage = target._storage
    if storage.inference:
        return False
    storage.forget_last_view(target)  # nobody will see it: no need for a new node after the write
    check_inplace(target, (value,))
    node = None
    if target._edge is not None or value._edge is not None:
        node = write_node(overwrite, (target, value), "FillBackward3" if target._array.ndim else "CopyBackwards")
    target._array[...] = value._array
    finish_write(target, node)
    return True


def _numpy_index(index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Turn an index into NumPy's, if that means the same there: ints and slices, or slices and one array, or arrays."""
    parts: list[Any] = []
    ints = slices = arrays = 0
    for part in index:
        kind = type(part)
        if kind is slice:
            if type(part.step) is int and part.step < 1:
                return None
            slices += 1
        elif kind is int:
            ints += 1
        elif kind in EXACT:
            part = part._array
            if type(part) is not NDARRAY or not part.ndim or (part.dtype is not INT64 and part.dtype is not BOOL):
                return None
            arrays += 1
        else:
            return None
        parts.append(part)
    return None if arrays and (ints or (slices and arrays > 1)) else tuple(parts)
