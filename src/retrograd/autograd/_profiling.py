"""What happens while a profiler records: operations, backward nodes, optimizer steps and named blocks, each with its time.

Operations are seen as a `TorchFunctionMode` sees them: those that the program calls, not those they are made of. Only the thread that
started the recording is seen.
"""

from __future__ import annotations

import threading
from importlib import import_module
from time import perf_counter_ns
from typing import Any

from .._modes import Entry as BlockEntry
from .._modes import Mode, change_mode, current_mode
from ..overrides import TorchFunctionMode

USER, OPERATION = "user_annotation", "cpu_op"
NAMES = {
    "__getitem__": "index",
    "__setitem__": "index_put_",
    "__invert__": "bitwise_not",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "backward": None,  # its nodes are recorded
}
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "pow", "matmul", "mod")


class Entry:
    """Something that took time."""

    __slots__ = ("end", "index", "kind", "name", "parent", "shapes", "start", "thread")

    def __init__(self, name: str, kind: str, shapes: Any, parent: Entry | None, index: int) -> None:
        self.name, self.kind, self.shapes, self.parent, self.index = name, kind, shapes, parent, index
        self.thread = threading.get_ident()
        self.end: int | None = None
        self.start = perf_counter_ns()


class Recorder(TorchFunctionMode):
    """Takes down what happens from `start` to `stop`."""

    running: Recorder | None = None

    def __init__(self, shapes: bool = False) -> None:
        self.entries: list[Entry] = []
        self._has_shapes = shapes
        self._open: list[Entry] = []
        self._handles: list[Any] = []
        self._names: dict[Any, str | None] = {}

    def start(self) -> None:
        """Begin; there is one recording at a time."""
        if Recorder.running is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        optimizers = import_module("retrograd.optim.optimizer")
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._step_begins),
            optimizers.register_optimizer_step_post_hook(self._step_ends),
        ]
        self.__enter__()
        Recorder.running = self

    def _block_entry(self, before: Mode, entered: Mode) -> BlockEntry:
        self._entry = super()._block_entry(before, entered)
        return self._entry

    def stop(self) -> None:
        """End; what has not ended ends now."""
        if Recorder.running is not self:
            return
        Recorder.running = None
        # A block such as no_grad, entered before the recording began and left since, has put the modes back already.
        change_mode(function_modes=tuple(one for one in current_mode().function_modes if one is not self))
        self._entry.holds = None
        for handle in self._handles:
            handle.remove()
        if self._open:
            self.end(self._open[0])

    def begin(self, name: str, kind: str = USER, shapes: Any = ()) -> Entry:
        """Note that something begins."""
        made = Entry(name, kind, shapes, self._open[-1] if self._open else None, len(self.entries))
        self.entries.append(made)
        self._open.append(made)
        return made

    def end(self, entry: Entry) -> None:
        """Note that something has ended, and all that began inside of it and was left by an error."""
        now = perf_counter_ns()
        while self._open and entry.end is None:
            self._open.pop().end = now

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = self._names.get(func) or self._named(func)
        if name is None or Recorder.running is not self:
            return func(*args, **kwargs)
        shapes = [list(one.shape) if hasattr(one, "_array") else [] for one in args] if self._has_shapes else ()
        entry = self.begin(name, OPERATION, shapes)
        try:
            return func(*args, **kwargs)
        finally:
            self.end(entry)

    def _named(self, func: Any) -> str | None:
        """Return torch's name of the operation behind a function; None if it is none, as a property."""
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__", ""):
            return None
        if name.startswith("__") and name not in NAMES:
            name = name.strip("_")
            if name[0] in "ir" and name[1:] in ARITHMETIC:
                name = NAMES.get(name[1:], name[1:]) + ("_" if name[0] == "i" else "")  # type: ignore[operator]
        found = NAMES.get(name, name)
        if found is not None:
            found = self._names[func] = f"aten::{found}"
        return found

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.begin(f"Optimizer.step#{type(optimizer).__name__}.step")

    def _step_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        name = f"Optimizer.step#{type(optimizer).__name__}.step"
        for entry in reversed(self._open):
            if entry.name == name:
                self.end(entry)
                return
