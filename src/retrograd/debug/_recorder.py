"""Recording: what a program computes between two moments, forward and backward, as it happens.

Note [What a recording sees]
Rule 1. Operations are seen as a `TorchFunctionMode` sees them: the calls of the program, not those they are made of. A call runs as it
        would without the mode, so results keep their bits.
Rule 2. Nodes are seen by an `Observer` of the engine, which runs them as it would without.
Rule 3. A node belongs to the operation in which it was made. What no mode sees (a custom Function, `x.T`, the second graph of
        `create_graph`) becomes an operation when something uses its node or its result.
Rule 4. Nothing is kept alive: tensors, nodes and arrays are known by weak references, which also say when they went.
Rule 5. An optimizer's step is one operation. The mode is off meanwhile, because steps run by plans only where no mode is on.
Rule 6. One thread is seen: the one in which the recording began.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any
from weakref import ref

from .._core.levels import creation_numbers
from .._modes import Entry as BlockEntry
from .._modes import Mode, change_mode, current_mode
from .._places import user_frame
from .._readable import counted
from ..autograd._observing import Observer
from ..overrides import TorchFunctionMode
from ._boxes import Boxes, Moment, moment, outermost, tensors_in
from ._findings import in_words
from ._trace import FORWARD, OPERATION, OPTIMIZER, READ, STEP, Group, Operation, Trace
from ._variables import name_of
from ._watcher import Watcher

NAMES = {"__getitem__": "getitem", "__setitem__": "setitem_", "__get__": "", "__set__": "", "__delete__": ""}
READS = ("item", "tolist", "numpy", "float", "int", "bool", "complex", "index", "array")
SILENT = ("backward", "requires_grad_", "retain_grad", "register_hook", "share_memory_")  # they change no values


class Recorder(TorchFunctionMode):
    """Fills a trace from `start` to `stop`. See Note [What a recording sees]."""

    _only_watches = True

    def __init__(
        self, trace: Trace, *, limit: int, steps: int | None, statistics: bool, when_full: Callable[[], None]
    ) -> None:
        self.boxes = Boxes(trace, statistics=statistics, group=self._group, name=_name_in_program)
        self.boxes.when_ran = self._check_limits
        self.watcher = Watcher(self.boxes, self._is_seeing, self._seeing_program, lambda: self._until)
        self.trace = trace
        self._limit, self._steps, self._when_full = limit, steps, when_full
        self._taken = 0  # steps of optimizers
        self._handles: list[Any] = []
        self._calls: list[int] = []  # the groups of module calls that have not ended
        self._modules: dict[int, tuple[Any, str]] = {}
        self._paths: list[str] = []  # of the groups
        self._parameters: dict[int, tuple[Any, str, int]] = {}  # of modules and optimizers, by id, and who called them
        self._stepped: dict[int, Any] = {}  # parameters of optimizers that have taken a step, by id
        self.is_cut_off = False  # whether the recording has ended at its limit
        self._step_began: tuple[int, int, Moment] | None = None
        self._thread = 0
        self._until: FrameType | None = None
        self._entry: BlockEntry | None = None

    # ---- beginning and ending ----
    def start(self, until: FrameType | None) -> None:
        """Begin; there is one recording at a time. `until`: the outermost frame whose lines are shown."""
        if Observer.running is not None:
            raise RuntimeError(
                "record(): a recording is running already\nHint: recordings cannot be nested; leave the outer one first."
            )
        modules = import_module("retrograd.nn.modules.module")
        optimizers = import_module("retrograd.optim.optimizer")
        self._until, self._thread = until, threading.get_ident()
        self.boxes.origin = moment()
        self._handles = [
            modules.register_module_forward_pre_hook(self._module_begins),
            modules.register_module_forward_hook(self._module_ends, always_call=True),
            optimizers.register_optimizer_step_pre_hook(self._step_begins),
            optimizers.register_optimizer_step_post_hook(self._step_ends),
        ]
        self.__enter__()
        Observer.running = self.watcher

    def _block_entry(self, before: Mode, entered: Mode) -> BlockEntry:
        self._entry = super()._block_entry(before, entered)
        return self._entry

    def stop(self) -> None:
        """End. Inside of a call that the mode sees, the mode itself stays on until this is called again, and sees nothing."""
        if self in current_mode().function_modes:
            self._switch(False)
        if Observer.running is not self.watcher:
            return
        Observer.running = None
        self.boxes.close()
        if self._entry is not None:
            self._entry.holds = None
        for handle in self._handles:
            handle.remove()
        self._until = None

    def _switch(self, on: bool) -> None:
        """See operations, or see none. Blocks of other modes may have been entered meanwhile."""
        others = tuple(one for one in current_mode().function_modes if one is not self)
        change_mode(function_modes=(*others, self) if on else others)

    def _is_seeing(self) -> bool:
        return Observer.running is self.watcher and threading.get_ident() == self._thread

    @contextmanager
    def _seeing_program(self) -> Iterator[None]:
        """See what a custom backward calls, or a checkpoint that computes again."""
        before = current_mode().function_modes
        self._switch(True)
        try:
            yield
        finally:
            change_mode(function_modes=before)

    def _check_limits(self) -> None:
        if Observer.running is not self.watcher:
            return
        if len(self.trace.steps) >= self._limit:
            limit = counted(self._limit, "event")
            self.trace.notes.append(f"The recording ended at its limit of {limit}; the program went on.")
            self.is_cut_off = True
        elif self._steps is None or self._taken < self._steps:
            return
        self.stop()
        self._when_full()

    # ---- operations ----
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name_of(func)
        if not name or not self._is_seeing():
            return func(*args, **kwargs)
        given = list(tensors_in((args, kwargs)))
        tracked = any(one.requires_grad for one in given)
        number, began = creation_numbers(), moment()
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self._add(name, OPERATION, given, began, remark=in_words(error))
            raise
        ended = moment()
        made = given[:1] if name == "setitem_" else list(tensors_in(result))
        writes = name.endswith("_")
        if name in SILENT or (made and not writes and all(any(one is other for other in given) for one in made)):
            return result
        if made:
            cut = tracked and not _reads_shape_alone(name) and not any(one.requires_grad for one in made)
            facts = _why_cut(name, made[0]) if cut else {}
            self._add(name, OPERATION, given, began, ended, made, number, writes, **facts)
        elif name in READS and tracked:
            remark = f"{name}() makes numbers of values, and numbers have no gradient"
            self._add(name, READ, given, began, ended, remark=remark, cut=True)
        return result

    def _add(
        self,
        name: str,
        kind: str,
        given: list[Any],
        began: Moment,
        ended: Moment | None = None,
        made: list[Any] | None = None,
        number: int = 0,
        writes: bool = False,
        **facts: Any,
    ) -> None:
        boxes = self.boxes
        stack = self.trace.places.stack(user_frame(sys._getframe(2)), self._until)
        at = boxes.add(Operation(name, kind, self._group(), stack, boxes.sources(given), **facts))
        for tensor in made or ():
            boxes.add_result(at, tensor, written=writes)
            boxes.claim(tensor, at, number)
        boxes.ran(FORWARD, at, began, ended)

    def unused(self) -> list[str]:
        """Return the names of parameters that no operation has taken; what writes into them, as `init` does, takes nothing."""
        boxes = self.trace.operations
        used = {boxes[at].leaf for box in boxes for at in box.inputs[box.name.endswith("_") :]}
        names = Counter(name for _, name, _ in self._parameters.values())
        return [
            name + (self.trace.places.written(stack) if names[name] > 1 else "")
            for key, (kept, name, stack) in self._parameters.items()
            if (tensor := kept()) is not None
            and ((seen := self.boxes.leaves.get(key)) is None or seen[0]() is not tensor or seen[1] not in used)
        ]

    def stepped(self) -> set[int] | None:
        """Return the numbers of the leaves that optimizers have; None if none has taken a step."""
        if not self._taken:
            return None
        leaves = self.boxes.leaves
        return {
            number for key, (kept, number) in leaves.items() if key in self._stepped and kept() is self._stepped[key]()
        }

    def _group(self) -> int:
        return self._calls[-1] if self._calls else -1

    # ---- modules ----
    def _module_begins(self, module: Any, args: Any) -> None:
        if not self._is_seeing():
            return
        self._resume()
        if id(module) not in self._modules:
            self._learn_names(module)
        path = self._modules[id(module)][1]
        parent = self._group()
        above = f"{self._paths[parent]}." if parent >= 0 else ""
        self.trace.groups.append(Group(path.removeprefix(above), type(module).__name__, parent))
        self._paths.append(path)
        self._calls.append(len(self.trace.groups) - 1)

    def _learn_names(self, root: Any) -> None:
        kind = type(root).__name__
        stack = self.trace.places.stack(user_frame(sys._getframe(2)), self._until)
        for name, module in root.named_modules():
            self._modules.setdefault(id(module), (module, f"{kind}.{name}" if name else kind))
        for name, tensor in _own_leaves(root.named_parameters()):
            self._parameters.setdefault(id(tensor), (ref(tensor), f"{kind}.{name}", stack))
        for name, tensor in _own_leaves((*root.named_parameters(), *root.named_buffers())):
            self.boxes.name_leaf(tensor, name)
            self.boxes.note_memory([tensor])

    def _module_ends(self, module: Any, args: Any, result: Any) -> None:
        if self._is_seeing() and self._calls:
            self._calls.pop()

    # ---- optimizers ----
    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if not self._is_seeing():
            return None
        stack = self.trace.places.stack(user_frame(sys._getframe(1)), self._until)
        self._step_began = (self._group(), stack, moment())
        self._switch(False)
        if len(args) > 1 and callable(args[1]):  # the first is the optimizer
            return (args[0], partial(self._closure, args[1]), *args[2:]), kwargs
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": partial(self._closure, kwargs["closure"])}
        return None

    def _closure(self, closure: Callable[[], Any]) -> Any:
        began, self._step_began = (
            self._step_began,
            None,
        )  # modules that are called now are no sign that the step has ended
        with self._seeing_program():
            result = closure()
        self._step_began = began
        return result

    def _step_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._step_began is None or not self._is_seeing():
            return
        group, stack, began = self._step_began
        ended = moment()
        grads = [one.grad for each in optimizer.param_groups for one in each["params"] if one.grad is not None]
        self.boxes.note_memory(tensors_in(list(optimizer.state.values())))
        name = f"{type(optimizer).__name__}.step"
        for number, group_of in enumerate(optimizer.param_groups):
            for k, one in enumerate(group_of["params"]):
                of_step = f"parameter {k} in group {number} of {type(optimizer).__name__}"
                self._parameters.setdefault(id(one), (ref(one), of_step, stack))
                self._stepped[id(one)] = ref(one)
        at = self.boxes.add(Operation(name, OPTIMIZER, group, stack, self.boxes.sources(grads), stepped=len(grads)))
        self._taken += 1
        self._resume()
        self.boxes.ran(STEP, at, began, ended)

    def _resume(self) -> None:
        """See operations again, after an optimizer's step has ended or was left by an error."""
        if self._step_began is not None:
            self._step_began = None
            self._switch(True)


def _own_leaves(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Return a module's own tensors; `functional_call` gives it results of operations, or what shows its own in a transform."""
    for name, tensor in named:
        outer = outermost(tensor)
        if outer.is_leaf:
            yield name, outer


def _name_of(func: Any) -> str:
    """Return the name of a function as programs write it; nothing, if it is a property's."""
    name = getattr(func, "__name__", "")
    return NAMES.get(name, name.strip("_") if name.startswith("__") else name)


def _reads_shape_alone(name: str) -> bool:
    """Tell whether a function makes a tensor as large as another: `zeros_like`, `new_ones`; values of `new_tensor` are given."""
    return name.endswith("_like") or (name.startswith("new_") and name != "new_tensor")


def _why_cut(name: str, result: Any) -> dict[str, Any]:
    """Say why no gradient passes an operation, and whether a program that cuts there means it."""
    if name in ("detach", "detach_"):
        return {"cut": True, "is_meant": True, "remark": "detach() takes the value out of the graph"}
    if not current_mode().grad:
        remark = "no gradient is recorded here, inside of no_grad or inference_mode"
        return {"cut": True, "is_meant": True, "remark": remark}
    if not (result.dtype.is_floating_point or result.dtype.is_complex):
        return {"cut": True, "remark": f"{name}() gives {result.dtype}, and integers have no gradient"}
    return {"cut": True, "remark": f"{name}() has no gradient"}


def _name_in_program(tensor: Any) -> str:
    """Return what the program's code that runs now calls a tensor."""
    return name_of(tensor, user_frame(sys._getframe(1)))
