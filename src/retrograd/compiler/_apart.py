"""Tensors that look otherwise to one thread than to the others.

Note [One thread's tensors]
While a function is recorded, and while a record is on trial, tensors that everybody can reach hold other arrays, other gradients and no
history. If there are other threads, they must not see that, and what they write must not be lost. Then the four slots of a tensor stay as
they are, and its class becomes one that reads and writes them: for the thread that records, what is kept beside for it; for the others the
slots. One thread at a time does so, under `one_at_a_time`. A copy made by another thread waits for the end: it would have that class.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from ..optim._step import PLANNED
from ..overrides import UNSEEING
from ..tensor._base import TensorBase, disabled_torch_function, plain_types, shown_types
from ..tensor._recording.flat import EXACT, install

one_at_a_time = threading.RLock()
_seen: dict[int, list[Any]] = {}  # by the id of a tensor: what it looks like, and to which thread
NAMES = ("_array", "_edge", "_extra", "_storage")
_thread = threading.get_ident


def is_alone() -> bool:
    """Tell whether there is no other thread that could look at anything."""
    collecting = gc.isenabled()
    gc.disable()  # Python 3.11 holds a lock here, for which a `threading.local` that is collected would wait forever (gh-106883)
    try:
        return len(sys._current_frames()) == 1
    finally:
        if collecting:
            gc.enable()


def _slot(at: int) -> Any:
    slot: Any = TensorBase.__dict__[NAMES[at]]

    def read(self: Any) -> Any:
        own = _seen.get(id(self))
        return own[at] if own is not None and own[-1] == _thread() else slot.__get__(self)

    def write(self: Any, value: Any) -> None:
        own = _seen.get(id(self))
        if own is not None and own[-1] == _thread():
            own[at] = value
        else:
            slot.__set__(self, value)

    return property(read, write)


def _waiting(name: str) -> Any:
    def method(self: Any, *args: Any) -> Any:
        with one_at_a_time:
            kind = type(self)
            return getattr(BEHIND.get(kind, kind), name)(self, *args)

    return method


def _shown(cls: Any) -> Any:
    namespace: dict[str, Any] = {name: _slot(at) for at, name in enumerate(NAMES)}
    namespace |= {name: _waiting(name) for name in ("__deepcopy__", "__reduce_ex__")}
    names: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    names["__torch_function__"] = disabled_torch_function  # it is no class of a user's
    return type(cls)(cls.__name__, (cls,), namespace | names)


SHOWN: dict[Any, Any] = {cls: _shown(cls) for cls in EXACT}
BEHIND = {shown: cls for cls, shown in SHOWN.items()}
for _classes in (shown_types, plain_types, UNSEEING, PLANNED):  # what asks for the usual classes means these, too
    _classes.update(BEHIND)
install(*BEHIND)


class Snapshot:
    """What a tensor is like, so that it can look otherwise for a while. See Note [One thread's tensors]."""

    __slots__ = (*[name[1:] for name in NAMES], "kind", "outer", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.array, self.edge, self.extra, self.storage = tensor._array, tensor._edge, tensor._extra, tensor._storage
        self.kind: Any = None  # its class, if that was changed
        self.outer: list[Any] | None = None  # what it looked like to this thread before

    def show(self, array: Any, edge: Any, extra: Any, storage: Any = None) -> None:
        """Let the tensor look so, to this thread at least."""
        tensor, kind = self.tensor, type(self.tensor)
        if kind not in BEHIND and is_alone():
            tensor._array, tensor._edge, tensor._extra, tensor._storage = array, edge, extra, storage
            return
        self.outer = _seen.get(id(tensor))
        self.kind = kind
        _seen[id(tensor)] = [array, edge, extra, storage, _thread()]
        tensor.__class__ = SHOWN.get(kind, kind)

    def restore(self) -> None:
        """Let the tensor be as it was."""
        tensor = self.tensor
        if self.kind is None:
            tensor._array, tensor._edge, tensor._extra = self.array, self.edge, self.extra
            tensor._storage = self.storage
            return
        tensor.__class__ = self.kind
        if self.outer is None:
            del _seen[id(tensor)]
        else:
            _seen[id(tensor)] = self.outer
        self.kind = None
