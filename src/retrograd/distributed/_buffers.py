"""The memory of tensors as engines want it: one row of numbers on the host, written back when a collective has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.arrays import LevelArray
from .._modes import using
from ..tensor._aliasing.views import wrote
from ..tensor._base import materialise, wrap


def flat_of(tensor: Any) -> Any:
    """Return a tensor's numbers in a row: its own memory if that is dense, a copy otherwise. Arrays of a device stay there."""
    array = _array_of(tensor)
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    return array.reshape(-1)


def host_flat_of(tensor: Any) -> Any:
    """Return a tensor's numbers in a row, on the host."""
    flat = flat_of(tensor)
    return flat if isinstance(flat, np.ndarray) else flat.get()


def joined(tensors: Sequence[Any], host: bool) -> Any:
    """Return the numbers of several tensors one after the other."""
    rows = [host_flat_of(one) if host else flat_of(one) for one in tensors]
    return rows[0] if len(rows) == 1 else _module_of(rows[0]).concatenate(rows)


def room_for(tensors: Sequence[Any], host: bool) -> Any:
    """Return memory for the numbers of several tensors; a single dense tensor gives its own."""
    if len(tensors) == 1:
        return host_flat_of(tensors[0]) if host else flat_of(tensors[0])
    array = _array_of(tensors[0])
    module = np if host else _module_of(array)
    return module.empty(sum(one.numel() for one in tensors), array.dtype)


def write_back(tensors: Sequence[Any], flat: Any) -> None:
    """Let tensors have the numbers that were received; note the write where they were received in place."""
    if len(tensors) == 1:  # mostly its own memory as a row, which is quickly told
        array = tensors[0]._array
        if isinstance(flat, np.ndarray) and (flat.base is array or (flat.base is not None and flat.base is array.base)):
            wrote(tensors[0])
            return
    start = 0
    for tensor in tensors:
        array = _array_of(tensor)
        part = flat[start : start + array.size]
        start += array.size
        if type(part) is type(array) and array.flags.c_contiguous and _is_memory_of(array, part):
            wrote(tensor)
            continue
        with using(grad=False):
            tensor.copy_(wrap(part.reshape(array.shape)))


def _array_of(tensor: Any) -> Any:
    if isinstance(tensor._array, LevelArray):
        raise RuntimeError(
            "torch.distributed: a tensor inside vmap or jvp cannot be sent to other processes\n"
            "Hint: call the collective outside of the transform."
        )
    return materialise(tensor)


def _is_memory_of(array: Any, part: Any) -> bool:
    """Tell whether what was received is the memory of a dense array of as many numbers, or apart from it."""
    if isinstance(array, np.ndarray):
        return array.size == 0 or np.may_share_memory(array, part)
    return bool(array.size == 0 or array.data.ptr == part.data.ptr)


def _module_of(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy
