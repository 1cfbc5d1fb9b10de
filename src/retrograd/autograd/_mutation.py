"""allow_mutation_on_saved_tensors: a write copies what backward still needs of the memory, just before it happens."""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from .._core.arrays import owner_of_memory, raw_leaf
from .._core.primitive import vocabulary
from .._modes import Block, Entry, current_mode, push, write
from ..tensor._base import wrap


class _Handle:
    """Stands for a value saved for backward; graphs alone hold it."""

    __slots__ = ("__weakref__",)


class _AllowMutationOnSavedContext:
    """The values that graphs recorded in one block have saved: as they lie in memory, or copied before a write."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Any] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[tuple[int, int, int], _Handle] = WeakValueDictionary()
        self.sid_to_tid: dict[int, set[tuple[int, int, int]]] = {}  # by the memory they lie in; those not copied yet

    def pack(self, tensor: Any) -> _Handle:
        """Keep a value as it is, and remember where it lies."""
        array = tensor._array
        memory = _memory(array)
        known = id(array), memory, tensor._version
        handle = self.tid_to_weakhandle.get(known)
        if handle is None:
            handle = self.tid_to_weakhandle[known] = _Handle()
            self.original[handle] = wrap(array)
            self.sid_to_tid.setdefault(memory, set()).add(known)
        return handle

    def unpack(self, handle: _Handle) -> Any:
        """Return a saved value."""
        found = self.cloned.get(handle)
        if found is None:
            found = self.original.get(handle)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return wrap(found._array)

    def before_write(self, tensor: Any) -> None:
        """Copy the values that lie where a tensor is about to be written."""
        for known in self.sid_to_tid.pop(_memory(tensor._array), ()):
            handle = self.tid_to_weakhandle.pop(known, None)  # another array may have its address from now on
            if handle is not None:
                self.cloned[handle] = wrap(vocabulary.copy(self.original.pop(handle)._array))

    def clear(self) -> None:
        """Forget all saved values: no graph recorded so far in the block can be differentiated any more."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()


def _memory(array: Any) -> int:
    """Return the identity of the array that owns the memory; whoever saved a view of it keeps it alive."""
    return id(owner_of_memory(raw_leaf(array)))


class allow_mutation_on_saved_tensors(Block, ContextDecorator):  # noqa: N801 - torch's name
    """Let in-place operations overwrite what backward needs: it is copied first.

    Backward must run inside the block, too.
    """

    _block_fields = ("saved_hooks",)

    def __enter__(self) -> _AllowMutationOnSavedContext:
        mode = current_mode()
        packs = (getattr(pack, "__self__", None) for pack, _ in mode.saved_hooks)
        if any(isinstance(one, _AllowMutationOnSavedContext) for one in packs):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        if mode.saved_hooks_disabled is not None:
            raise RuntimeError(mode.saved_hooks_disabled)
        context = _AllowMutationOnSavedContext()
        entered = mode._replace(saved_hooks=(*mode.saved_hooks, (context.pack, context.unpack)))
        entry = self._block_entry_with((partial(getattr, context, "clear"),), mode, entered)
        write[entered]
        push[entry]
        return context

    def _block_ended(self, entry: Entry) -> None:
        entry.ends[0]()()
