"""torch.multiprocessing.reductions: what goes through a queue or pipe, or to a new process, for a tensor. See Note [Shared memory]."""

from __future__ import annotations

import weakref
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from .. import _dtypes
from ..tensor import Parameter, Tensor
from ..tensor._files.pickling import reduced
from ..tensor._storage.sharing import (
    NOT_ACROSS_PROCESSES,
    SharedMap,
    map_of_file,
    memory_at,
    new_map,
    place_of,
    share,
    share_storage,
)
from ..tensor._storage.storages import UntypedStorage, storage_on
from ..tensor._storage.typed_storages import TypedStorage, typed_storage

COPIED = 1 << 16  # bytes up to which a copy goes along, for a receiver who comes when the sender has gone
GONE = (FileNotFoundError, ConnectionError, EOFError)


def reduce_tensor(tensor: Any) -> Any:
    """Move a tensor's memory to where the receiver sees it, too."""
    if tensor._edge is not None and not tensor.is_leaf:
        raise RuntimeError(NOT_ACROSS_PROCESSES)
    share([tensor], is_asked_for=False)
    return reduced(tensor)


def reduce_storage(storage: UntypedStorage) -> Any:
    """Send where a storage lies; the bytes of one on a GPU."""
    if not isinstance(storage._memory, np.ndarray):
        return storage.__reduce__()
    share_storage(storage, is_asked_for=False)
    found = place_of(storage._memory)
    assert found is not None
    return rebuild_storage, (*found, storage.nbytes())


def reduce_typed_storage(storage: TypedStorage) -> Any:
    """Send a storage and its dtype."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype.name)


def reduce_map(place: SharedMap) -> Any:
    """Send the descriptor of shared memory, and a copy of little memory that only this message shares."""
    is_received_later = get_spawning_popen() is None
    copy = bytes(place) if is_received_later and not place.is_asked_for and len(place) <= COPIED else None
    return rebuild_map, (reduction.DupFd(place.descriptor), copy)


def rebuild_map(descriptor: Any, copy: bytes | None) -> SharedMap:
    """Map what another process has sent."""
    try:
        file = descriptor.detach()
    except GONE as error:
        if copy is None:
            error.add_note(
                "The process that sent the tensor has ended: it must wait until all it sent has been received."
            )
            raise
        place = new_map(len(copy), is_asked_for=False)
        place[:] = copy
        return place
    return map_of_file(file)


def rebuild_storage(place: SharedMap, start: int, size: int) -> UntypedStorage:
    """Make the storage at a place of shared memory."""
    return storage_on(memory_at(place, start, size))


def rebuild_typed_storage(storage: UntypedStorage, dtype: str) -> TypedStorage:
    """Make a storage that knows its dtype."""
    return typed_storage(storage, _dtypes.dtype_named(dtype))


class StorageWeakRef:
    """A reference to a storage's memory that does not keep it."""

    __slots__ = ("_live", "cdata")

    def __init__(self, storage: Any) -> None:
        self.cdata = storage._cdata
        self._live = weakref.ref(storage._memory)

    def expired(self) -> bool:
        """Tell whether nobody holds the memory any more."""
        return self._live() is None

    def __hash__(self) -> int:
        return int(self.cdata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def init_reductions() -> None:
    """Let Python's queues, pipes and new processes share the memory of tensors."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)
    ForkingPickler.register(SharedMap, reduce_map)
    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
