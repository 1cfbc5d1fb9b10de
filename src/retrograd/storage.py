"""torch.storage: the memory under tensors."""

from __future__ import annotations

from .tensor._files.pickling import _load_from_bytes, _of_array
from .tensor._storage.storages import UntypedStorage
from .tensor._storage.typed_storages import TypedStorage

_StorageBase = UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage", "_StorageBase", "_load_from_bytes", "_of_array"]
