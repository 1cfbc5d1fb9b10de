"""What happens while a profiler records: operations, backward nodes, optimizer steps and named blocks, each with its time.

Operations are seen as a `TorchFunctionMode` sees them: those that the program calls, not those they are made of. Only the thread that
started the recording is seen.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from importlib import import_module
from itertools import islice
from time import perf_counter_ns
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from .._core.arrays import owner_of_memory, raw_leaf
from .._modes import Entry as BlockEntry
from .._modes import Mode, change_mode, current_mode
from .._places import cell_of, line_of, program_frames, user_frame
from ..overrides import TorchFunctionMode
from ._flops import flops_of
from ._observing import Profiling

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
SUMS = ("aten::add", "aten::sub")  # whose gradients take no operations
DEEPEST = 32  # lines of a stack that are kept


class Wanted(NamedTuple):
    """What to take down besides times."""

    shapes: bool = False
    memory: bool = False
    stacks: bool = False
    flops: bool = False


class Memory(NamedTuple):
    """Memory that was taken (or given back: a negative number), and how much is held since."""

    time: int
    bytes: int
    held: int
    thread: int


class Entry:
    """Something that took time."""

    __slots__ = ("end", "flops", "index", "kind", "memory", "name", "parent", "shapes", "stack", "start", "thread")

    def __init__(self, name: str, kind: str, shapes: Any, parent: Entry | None, index: int) -> None:
        self.name, self.kind, self.shapes, self.parent, self.index = name, kind, shapes, parent, index
        self.thread = threading.get_native_id()
        self.end: int | None = None
        self.flops = self.memory = 0  # bytes of results that were made in it, without those that were let go
        self.stack: tuple[str, ...] = ()  # lines of the program, the innermost first
        self.start = perf_counter_ns()


class Recorder(TorchFunctionMode):
    """Takes down what happens from `start` to `stop`."""

    _only_watches = True

    def __init__(self, wanted: Wanted) -> None:
        self.entries: list[Entry] = []
        self.memory: list[Memory] = []
        self.wanted = wanted
        self._held: dict[int, tuple[Any, int]] = {}  # memory of results: a weak reference to its owner, and its bytes
        self._total = 0
        self._of_nodes: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # operations that the call of a node took
        self._open: list[Entry] = []
        self._handles: list[Any] = []
        self._names: dict[Any, str | None] = {}

    def start(self) -> None:
        """Begin; there is one recording at a time."""
        if Profiling.running is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        optimizers = import_module("retrograd.optim.optimizer")
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._step_begins),
            optimizers.register_optimizer_step_post_hook(self._step_ends),
        ]
        self.__enter__()
        Profiling.running = self

    def _block_entry(self, before: Mode, entered: Mode) -> BlockEntry:
        self._entry = super()._block_entry(before, entered)
        return self._entry

    def stop(self) -> None:
        """End; what has not ended ends now."""
        if Profiling.running is not self:
            return
        Profiling.running = None
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

    def end(self, entry: Entry, now: int | None = None) -> None:
        """Note that something has ended, now or before it was looked at, and all that began inside of it and was left by an error."""
        now = perf_counter_ns() if now is None else now
        while self._open and entry.end is None:
            self._open.pop().end = now

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = self._names.get(func) or self._named(func)
        if name is None or Profiling.running is not self:
            return func(*args, **kwargs)
        wanted = self.wanted
        shapes = [list(one.shape) if hasattr(one, "_array") else [] for one in args] if wanted.shapes else ()
        entry = self.begin(name, OPERATION, shapes)
        if wanted.stacks:
            entry.stack = _stack(user_frame(sys._getframe(1)))
        ended = None
        try:
            result = func(*args, **kwargs)
            ended = perf_counter_ns()
            if wanted.flops and (flops := flops_of(name, args, result)):
                entry.flops = flops
                if result.grad_fn is not None and name.rstrip("_") not in SUMS:
                    self._of_nodes[result.grad_fn] = flops
            if wanted.memory:
                self._take(result if isinstance(result, (tuple, list)) else (result,), args)
            return result
        finally:
            self.end(entry, ended)

    def begin_node(self, node: Any) -> Entry:
        """Note that the backward of a node begins; its line is that of its call, and it takes the call's operations for each factor."""
        entry = self.begin(node.name(), OPERATION)
        if self.wanted.stacks and node.code is not None:
            entry.stack = (_line(node.code.co_filename, line_of(node.code, node.lasti), node.code.co_name),)
        if (flops := self._of_nodes.get(node)) is not None:
            factors = node._edges[1:3] if entry.name.startswith(("Addmm", "Baddbmm", "Addmv")) else node._edges[:2]
            entry.flops = flops * sum(edge is not None for edge in factors)
        return entry

    def end_node(self, entry: Entry, given: Any, grads: Any) -> None:
        """Note that the backward of a node has ended, with the gradients that it was given and made."""
        ended = perf_counter_ns()
        if self.wanted.memory:
            self._take(grads, given if isinstance(given, tuple) else (given,))
        self.end(entry, ended)

    # ---- memory ----
    def _take(self, made: Any, given: Any) -> None:
        """Count the memory of results that no argument has; it is let go when its owner is."""
        before = {id(_owner(one)) for one in given}
        for one in made:
            owner = _owner(one)
            if owner is None or id(owner) in before or id(owner) in self._held:
                continue
            key, size = id(owner), int(owner.nbytes)
            self._held[key] = ref(owner, partial(self._let_go, key)), size
            self._count(size)

    def _let_go(self, key: int, owner: Any) -> None:
        if Profiling.running is self:
            self._count(-self._held.pop(key)[1])

    def _count(self, size: int) -> None:
        self._total += size
        self.memory.append(Memory(perf_counter_ns(), size, self._total, threading.get_native_id()))
        if self._open:
            self._open[-1].memory += size

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


def _owner(value: Any) -> Any:
    """Return the array that has the memory of a tensor, or of a raw gradient; None for what has none of its own."""
    array = raw_leaf(getattr(value, "_array", value))
    return owner_of_memory(array) if isinstance(array, np.ndarray) else None


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """Return the lines of the program from a frame on, as torch writes them, the innermost first."""
    frames = islice(program_frames(frame), DEEPEST)
    return tuple(_line(one.f_code.co_filename, one.f_lineno, one.f_code.co_name) for one in frames)


def _line(file: str, line: int, name: str) -> str:
    return f"{cell_of(file) or file}({line}): {name}"
