"""`Tensor.set_`: a tensor takes the memory, shape and strides of another one, or of a storage."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ... import _size
from ..._modes import current_mode
from ..._stored import as_storage_only
from .. import _base
from .._object.layout import dense_strides
from .._recording.no_derivative import without_derivative
from .._storage.deep_copies import memory_of, need_inside, on_memory
from .._storage.storages import UntypedStorage
from .._storage.typed_storages import TypedStorage
from .entering import A_LEAF
from .views import rebase, wrote

FORMS = """
 * ()
 * (torch.Storage source)
 * (torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)
 * (Tensor source)
 * (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)
"""


def set_(self: Any, source: Any = None, storage_offset: Any = None, size: Any = None, stride: Any = None) -> Any:
    """Lie on the memory of a tensor or a storage from now on: all of it, or a part with a size and strides of its own."""
    given = [one for one in (source, storage_offset, size, stride) if one is not None]
    is_known = source is None or isinstance(source, (_base.Tensor, UntypedStorage, TypedStorage))
    if not is_known or (storage_offset is None) != (size is None) or (source is None and given):
        kinds = ", ".join(_named(one) for one in given)
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({kinds}), but expected one of:{FORMS}"
        )
    follows = current_mode().grad and (self.requires_grad or getattr(source, "requires_grad", False))
    if follows and self.requires_grad and self.is_leaf:
        raise RuntimeError(A_LEAF)
    array = _taken(self, source, storage_offset, size, stride)
    edges = tuple(_base.edge_of(one) for one in (self, source) if isinstance(one, _base.Tensor))
    wrote(self)
    self._array = array
    if follows:
        rebase(self, without_derivative("set_", edges))
    return self


def _taken(tensor: Any, source: Any, offset: Any, size: Any, stride: Any) -> Any:
    """Return the array of the tensor once it has the source's memory."""
    dtype = _base.dtype_of(tensor)
    if source is None:
        return np.empty(0, dtype.numpy)
    if isinstance(source, _base.Tensor):
        own = _base.dtype_of(source)
        if own is not dtype:
            names = f"{own._scalar_name.lower()} to a tensor of type {dtype._scalar_name.lower()}"
            raise RuntimeError(f"Could not set tensor of type {names}")
        array = _base.materialise(source)
        if size is None:
            return array
        memory = memory_of(source)[0]
    else:
        if isinstance(source, TypedStorage) and source.dtype is not dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtype._scalar_name.lower()} or an UntypedStorage, but got type "
                f"{source.dtype._scalar_name} for argument 1 'storage'"
            )
        untyped = source.untyped()
        untyped._has_tensors = True
        memory = untyped._memory
        if size is None:
            offset, size, stride = 0, (memory.nbytes // dtype.itemsize,), (1,)
    size, offset = tuple(map(index, size)), index(offset)
    stride = tuple(map(index, stride)) if stride else dense_strides(size)
    need_inside(size, stride, offset, dtype.itemsize, memory.nbytes)
    return as_storage_only(on_memory(memory, offset, size, stride, dtype.numpy))


def _named(value: Any) -> str:
    kinds = {
        UntypedStorage: "torch.storage.UntypedStorage",
        TypedStorage: "torch.storage.TypedStorage",
        _size.Size: "torch.Size",
    }
    return kinds.get(type(value), type(value).__name__)
