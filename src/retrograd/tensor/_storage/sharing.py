"""Memory that several processes see: `share_memory_`, and what a pickle for another process sends in place of the memory.

Note [Shared memory]
The memory of shared tensors lies in an anonymous file that is mapped: a forked process has the mapping, and one that was started anew
gets the file's descriptor. The file has no name, so nothing is left behind, whoever is killed and whenever: the system frees it when
nobody holds or maps it.

A tensor that is shared moves to new memory. Tensors that lie on the old one must move, too, but an array does not know who views it.
Where the array's reference count says that somebody does, all tensors of the process are asked.
"""

from __future__ import annotations

import gc
import mmap
import os
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from ..._core.arrays import is_meta, owner_of_memory
from .. import _base
from .._object.layout import address, strides
from .deep_copies import on_memory
from .storages import UntypedStorage, _known

ALIGNED = 64  # bytes: where memories begin in a file

NOT_ACROSS_PROCESSES = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
    "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on "
    "the queue)."
)


class SharedMap(mmap.mmap):
    """A mapped file without a name, and the descriptor by which others get it."""

    descriptor: int
    is_asked_for: bool  # whether somebody has called `share_memory_`; else the memory was only sent
    memories: WeakValueDictionary[tuple[int, int], Any]  # by place and size: equal ones are one array


_maps: WeakValueDictionary[tuple[int, int], SharedMap] = WeakValueDictionary()  # by device and inode of the file


def new_map(size: int, is_asked_for: bool) -> SharedMap:
    """Make shared memory, filled with zeros."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("retrograd-shared", os.MFD_CLOEXEC)
    elif os.name == "posix":
        with tempfile.TemporaryFile(prefix="retrograd-shared") as named:
            file = os.dup(named.fileno())
    else:
        raise NotImplementedError(
            "share_memory_: retrograd shares memory between processes on POSIX systems only\nHint: send tensors through a queue."
        )
    os.ftruncate(file, max(size, 1))
    made = map_of_file(file)
    made.is_asked_for = is_asked_for
    return made


def map_of_file(file: int) -> SharedMap:
    """Map a file that was made by `new_map`, here or in another process, and take over its descriptor."""
    about = os.fstat(file)
    key = about.st_dev, about.st_ino
    found = _maps.get(key)
    if found is not None:
        os.close(file)
        return found
    made = SharedMap(file, about.st_size)
    made.descriptor, made.is_asked_for, made.memories = file, True, WeakValueDictionary()
    finalize(made, os.close, file).atexit = False
    _maps[key] = made
    return made


def memory_at(place: SharedMap, start: int, size: int) -> Any:
    """Return the bytes at a place of shared memory; the same array as long as somebody holds it."""
    found = place.memories.get((start, size))
    if found is None:
        found = place.memories[start, size] = np.ndarray((size,), np.uint8, buffer=place, offset=start)
    return found


def place_of(memory: Any) -> tuple[SharedMap, int] | None:
    """Return where a memory lies in shared memory, if it does."""
    root = owner_of_memory(memory)
    if not isinstance(root, np.ndarray) or not isinstance(root.base, SharedMap):
        return None
    start = address(root) - address(np.ndarray((1,), np.uint8, buffer=root.base))
    return root.base, start + address(memory) - address(root)


def is_shared(tensor: Any) -> bool:
    """Tell whether other processes see the memory of a tensor, as they may that of every tensor on a GPU."""
    array = tensor._array
    if not isinstance(array, (np.ndarray, np.generic)):
        return bool(tensor.device.type == "cuda")
    return place_of(array) is not None


def share_memory_(self: Any) -> Any:
    """Move the memory to where other processes see it, and that of all tensors which share it."""
    share([self])
    return self


def share(tensors: Iterable[Any], is_asked_for: bool = True) -> None:
    """Let other processes see the memory of tensors: all in one file, so that a model does not take hundreds of descriptors."""
    import_module("retrograd.multiprocessing")  # from now on, processes that are started anew see it as well
    roots: dict[int, Any] = {}
    mine, is_alone = [], True
    for tensor in tensors:
        array = _base.materialise(tensor)
        if is_meta(array):
            raise RuntimeError("_share_fd_: only available on CPU\nHint: a tensor on the meta device has no memory.")
        if not isinstance(array, np.ndarray):
            continue  # memory of a GPU; inside a transform nobody else could use it
        if (place := place_of(array)) is not None:
            place[0].is_asked_for |= is_asked_for
            continue
        del array
        is_alone &= _count(tensor) == ALONE
        mine.append(tensor)
        root = _dense_root(tensor._array)
        roots[id(root)] = root
    if roots:
        _move(list(roots.values()), mine if is_alone else _all_tensors(), is_asked_for)


def share_storage(storage: UntypedStorage, is_asked_for: bool = True) -> None:
    """Let other processes see a storage."""
    import_module("retrograd.multiprocessing")
    memory = storage._memory
    if isinstance(memory, np.ndarray) and place_of(memory) is None:
        _move([memory], _all_tensors(), is_asked_for)


def _move(roots: list[Any], tensors: list[Any], is_asked_for: bool) -> None:
    """Copy memories into one new file; let tensors and storages lie there."""
    starts, end = [], 0
    for root in roots:
        starts.append(end)
        end += root.nbytes + -root.nbytes % ALIGNED
    place = new_map(end, is_asked_for)
    moved = {}
    for start, root in zip(starts, roots, strict=True):
        new = memory_at(place, start, root.nbytes)
        if root.flags.forc:
            new[...] = np.ravel(root, order="K").view(np.uint8)
        moved[id(root)] = root, new
    for tensor in tensors:
        array = tensor._array
        if not isinstance(array, np.ndarray):
            continue
        if (pair := moved.get(id(array))) is None and (pair := moved.get(id(owner_of_memory(array)))) is None:
            continue
        tensor._array = _on(*pair, array)
    for root, new in moved.values():
        if (storage := _known.get(id(root))) is not None and storage._memory is root:
            del _known[id(root)]
            storage._memory = new
            _known[id(new)] = storage


def _on(root: Any, new: Any, array: Any) -> Any:
    """Return the array that has on the new memory the place it had on the old one."""
    if not root.flags.forc:  # the array itself, with gaps in its memory: it becomes dense
        made = on_memory(new, 0, array.shape, strides(np.empty(array.shape, bool)), array.dtype)
        made[...] = array
        return made
    offset, rest = divmod(address(array) - address(root), array.itemsize) if array.size else (0, 0)
    if rest:
        raise NotImplementedError(
            "share_memory_: the tensor is not aligned with the elements of its storage, which has another dtype\nHint: share a clone of it."
        )
    made = on_memory(new, offset, array.shape, strides(array), array.dtype)
    if not array.flags.writeable:  # an expanded one
        made.flags.writeable = False
    return made


def _dense_root(array: Any) -> Any:
    """Return the array whose memory a tensor shares with others, or the array itself where that has gaps."""
    root = owner_of_memory(array)
    return root if isinstance(root, np.ndarray) and root.flags.forc and root.size and array.size else array


def _all_tensors() -> list[Any]:
    return [one for one in gc.get_objects() if type(one) in _base.leaf_types and hasattr(one, "_array")]


def _count(tensor: Any) -> int:
    array = tensor._array
    return sys.getrefcount(array) if array.base is None else 0


ALONE = _count(_base.wrap(np.empty(1), None, None))  # the count where no other tensor has the array
