"""allow_mutation_on_saved_tensors: a write copies what backward still needs of the memory, just before it happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet, ref

from .._core.arrays import raw_leaf
from .._core.primitive import vocabulary
from .._modes import change_mode, current_mode
from ..tensor._base import wrap


class _Saved:
    """A value saved for backward: the memory itself, until somebody is about to write into it."""

    __slots__ = ("__weakref__", "array", "context")

    def __init__(self, array: Any, context: _AllowMutationOnSavedContext) -> None:
        self.array: Any = array
        self.context = ref(context)


class _AllowMutationOnSavedContext:
    """The values that graphs recorded in one block have saved, by the memory they lie in."""

    def __init__(self) -> None:
        self.active = True
        self.saved: WeakSet[_Saved] = WeakSet()
        self.by_memory: dict[int, list[ref[_Saved]]] = {}  # those that are not copied yet

    def pack(self, tensor: Any) -> _Saved:
        """Keep a value as it is, and remember where it lies."""
        saved = _Saved(tensor._array, self)
        self.saved.add(saved)
        self.by_memory.setdefault(_memory(tensor._array), []).append(ref(saved))
        return saved

    @staticmethod
    def unpack(saved: _Saved) -> Any:
        """Return a saved value."""
        context = saved.context()
        if context is None or not context.active or saved.array is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return wrap(saved.array)

    def before_write(self, tensor: Any) -> None:
        """Copy the values that lie where a tensor is about to be written."""
        for held in self.by_memory.pop(_memory(tensor._array), ()):
            saved = held()
            if saved is not None and saved.array is not None:
                saved.array = vocabulary.copy(saved.array)

    def clear(self) -> None:
        """Forget all saved values: no graph recorded so far in the block can be differentiated any more."""
        for saved in self.saved:
            saved.array = None
        self.saved.clear()
        self.by_memory.clear()


def _memory(array: Any) -> int:
    """Return the identity of the array that owns the memory; whoever saved a view of it keeps it alive."""
    owner = raw_leaf(array)
    while getattr(owner, "base", None) is not None and hasattr(owner.base, "dtype"):
        owner = owner.base
    return id(owner)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Let in-place operations overwrite what backward needs: it is copied first.

    Backward must run inside the block, too.
    """
    mode = current_mode()
    if any(isinstance(getattr(pack, "__self__", None), _AllowMutationOnSavedContext) for pack, _ in mode.saved_hooks):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    if mode.saved_hooks_disabled is not None:
        raise RuntimeError(mode.saved_hooks_disabled)
    context = _AllowMutationOnSavedContext()
    change_mode(saved_hooks=(*mode.saved_hooks, (context.pack, context.unpack)))
    try:
        yield context
    finally:
        context.active = False
        context.clear()
        change_mode(saved_hooks=current_mode().saved_hooks[:-1])
