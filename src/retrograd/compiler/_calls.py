"""Compiled functions: which record a call may run, and what happens if there is none.

Note [Compiled calls]
A function has records. Each is good for calls whose guards hold: the modes; the structure, the shapes, dtypes and strides of what is given, and which tensors require
gradients; and the Python state that the function reads, as the purity analysis has found it. A call runs the first record whose guards hold. If there is none, the
function is recorded, unless it cannot be: then it runs in eager, and `explain` says why. A record whose program finds a value other than it was recorded for gives
nothing back, and nothing has changed: the next one is tried, or made. A function that needs more than `LIMIT` records runs in eager from then on for calls without one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dtypes import get_default_dtype
from .._generated import emit
from .._modes import NO_GRAD, PLAIN, current_mode
from .._settings import get_num_threads
from ..tensor._base import LEAF, Tensor, edge_of, storage_of, wrap
from ..tensor._recording.flat import EXACT
from ._backward import Call, CompiledBackward
from ._groups import grouped
from ._guards import compile_guards
from ._purity import analyse
from ._recording import Output, Recorded, record
from ._traced import UnrecordableError
from ._trees import UnknownError, check_lines, leaves, rebuilt

LIMIT = 16  # records of one function
NDARRAY = np.ndarray
_lock = threading.RLock()  # one recording at a time: tensors that others share hold traced arrays meanwhile
RETRY = object()


class Record:
    """A program with its guards. See Note [Compiled calls]."""

    def __init__(self, function: Any, args: Any, kwargs: Any, found: Recorded, tensors: list[Any], given: int) -> None:
        self.function = function
        self.found = found
        self.given = given  # how many of the tensors are arguments; the others are captured
        self.captured = tensors[given:]
        self.differentiated, self.gradients = found.differentiated, found.gradients
        found.forward = grouped(found.forward)
        self.program = found.forward.function("a compiled function")
        self.backward: Any = None
        if found.backward is not None:
            found.backward = grouped(found.backward)
            self.backward = found.backward.function("the backward of a compiled function")
        self.still_holds: Callable[[Any, Any], bool]


class Compiled:
    """A function that runs by records."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False, limit: int = LIMIT) -> None:
        self.function, self.fullgraph, self.limit = function, fullgraph, limit
        self.records: list[Any] = []
        self.reasons: list[str] = []  # why calls went to eager, newest last
        self.refused: set[Any] = set()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call by a record, or in eager."""
        mode = current_mode()
        if mode is PLAIN or mode is NO_GRAD:
            for run in self.records:
                result = run(mode, args, kwargs)
                if result is not RETRY:
                    return result
            return self._without_record(mode, args, kwargs)
        self._note("it is called under a mode (autocast, inference, a transform, or hooks on saved tensors)")
        return self.function(*args, **kwargs)

    def _note(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _without_record(self, mode: Any, args: Any, kwargs: Any) -> Any:
        with _lock:
            for run in list(self.records):  # another thread may have made it meanwhile
                result = run(mode, args, kwargs)
                if result is not RETRY:
                    return result
            key = _signature(args, kwargs)
            made = None
            if len(self.records) >= self.limit:
                self._note(f"it needs more than {self.limit} records")
            elif key is None or (mode, key) not in self.refused:
                try:
                    made = self._record(mode, args, kwargs)
                except (UnrecordableError, UnknownError) as error:
                    self._refuse(mode, key, str(error))
                except Exception as error:  # eager will say it, if it is the function's own
                    self._refuse(mode, key, f"recording it failed: {type(error).__name__}: {error}")
            if made is not None:
                self.records.insert(0, made)
                result = made(mode, args, kwargs)
                if result is not RETRY:
                    return result
        return self.function(*args, **kwargs)

    def _refuse(self, mode: Any, key: Any, reason: str) -> None:
        self._note(reason)
        if key is not None and len(self.refused) < 256:
            self.refused.add((mode, key))
        if self.fullgraph:
            raise RuntimeError(f"torch.compile(fullgraph=True) cannot compile the whole function: {reason}")

    def _record(self, mode: Any, args: Any, kwargs: Any) -> Any:
        found_tensors: list[tuple[str, Any]] = []
        facts: list[tuple[str, str, Any]] = []
        leaves(args, "args", found_tensors, facts)
        leaves(kwargs, "kwargs", found_tensors, facts)
        verdict = analyse(self.function, args, kwargs)
        if not verdict.pure:
            place = "" if verdict.place is None else f" ({verdict.place[0]}:{verdict.place[1]})"
            raise UnrecordableError(f"{verdict.reason}{place}")
        paths: dict[int, tuple[str, Any]] = {}
        for path, tensor in found_tensors:
            paths.setdefault(id(tensor), (path, tensor))
        given = len(paths)
        for _, tensor in verdict.tensors:
            paths.setdefault(id(tensor), ("", tensor))
        tensors = [tensor for _, tensor in paths.values()]
        found = record(lambda: self.function(*args, **kwargs), tensors, mode.grad)
        made = Record(self.function, args, kwargs, found, tensors, given)
        holds = compile_guards(verdict.guards)
        function = self.function
        made.still_holds = lambda args, kwargs: holds(function, args, kwargs)
        return _runner(made, mode, list(paths.values()), found_tensors, facts, holds)


def _signature(args: Any, kwargs: Any) -> Any:
    """Describe what is given, so that what could not be recorded is not tried again for the like; None if that cannot be said."""
    found: list[tuple[str, Any]] = []
    facts: list[tuple[str, str, Any]] = []
    try:
        leaves(args, "a", found, facts)
        leaves(kwargs, "k", found, facts)
        key = (
            tuple([(path, t._array.shape, t._array.dtype, t._edge is None) for path, t in found]),
            tuple([(path, kind, repr(value)) for path, kind, value in facts]),
        )
        hash(key)
    except (UnknownError, AttributeError, TypeError):
        return None
    return key


def _runner(record: Record, mode: Any, tensors: Any, paths: Any, facts: Any, holds: Any) -> Callable[..., Any]:
    """Write the function that checks the guards of a record, and runs its program."""
    found = record.found
    scope: dict[str, Any] = {
        "RETRY": RETRY, "ndarray": NDARRAY, "mode_of_record": mode, "asarray": np.asarray, "wrap": wrap, "edge_of": edge_of, "Call": Call,
        "record": record, "Node": CompiledBackward, "program": record.program, "holds": holds, "function": record.function,
        "default_dtype": get_default_dtype, "the_dtype": get_default_dtype(), "threads": get_num_threads, "Slot": _slot(),
        "storage_of": storage_of,
    }  # fmt: skip
    conditions = ["mode is not mode_of_record", *check_lines(facts, scope)]
    conditions += ["default_dtype() is not the_dtype", f"threads() != {get_num_threads()}"]
    lines = ["def run(mode, args, kwargs):"]
    names: dict[str, str] = {}  # by path
    for condition in conditions:
        lines += [f"    if {condition}:", "        return RETRY"]
    known: dict[int, str] = {}
    arrays = []
    for at, (path, tensor) in enumerate(tensors):
        name = f"t{at}"
        known[id(tensor)] = name
        if path:
            lines.append(f"    {name} = {path}")
            names[path] = name
        else:
            scope[name] = tensor
        lines += _tensor_check(at, name, tensor, scope)
        arrays.append(f"asarray(a{at})" if isinstance(tensor._array, np.generic) else f"a{at}")
    for path, tensor in paths:
        if path not in names:  # one tensor in two places, and tensors that must not be one
            lines += [f"    if {path} is not {known[id(tensor)]}:", "        return RETRY"]
    if len(names) > 1:
        distinct = ", ".join(f"id({name})" for name in names.values())
        lines += [f"    if len({{{distinct}}}) != {len(names)}:", "        return RETRY"]
    lines += ["    if not holds(function, args, kwargs):", "        return RETRY"]
    lines += [f"    found = program({', '.join(arrays)})", "    if found is None:", "        return RETRY"]
    if found.seeds:
        edges = "".join(f"edge_of(t{at}), " for at in found.differentiated)
        every = "".join(f"t{at}, " for at in range(len(tensors)))
        lines += [
            f"    node = Node().begin(({edges}))",
            f"    node.num_outputs = {found.seeds}",
            f"    node.call = Call(record, args, kwargs, ({every}))",
            f"    node.saved = found[{len(found.forward.results) - len(found.saved)}:]",
        ]
    seed = 0
    texts: dict[int, str] = {}
    for identity, out in found.outputs.items():
        if out.given:
            texts[identity] = f"t{out.index}"
            continue
        name = f"r{out.index}"
        edge = "None"
        if out.requires_grad:
            edge = "node" if found.seeds == 1 else f"Slot(node, {seed})"
            seed += 1
        lines.append(f"    {name} = wrap(found[{out.index}], {edge})")
        texts[identity] = name
    if found.seeds:
        lines.append(f"    node.versions = {_versions(found, tensors, texts)}")
    result = rebuilt(found.result, lambda tensor: texts[id(tensor)], scope)
    lines.append(f"    return {result}")
    run: Any = emit("a call of a compiled function", "\n".join(lines), scope)["run"]
    record.differentiable = _chooser(found)  # type: ignore[attr-defined]
    record.found.result = None
    run.record = record
    return run  # type: ignore[no-any-return]


def _slot() -> Any:
    from .._graph.node import Slot

    return Slot


def _tensor_check(at: int, name: str, tensor: Any, scope: dict[str, Any]) -> list[str]:
    """Write what must hold of a tensor."""
    array = tensor._array
    scope[f"type{at}"], scope[f"kind{at}"], scope[f"d{at}"] = type(tensor), type(array), array.dtype
    different = (
        f"type({name}) is not type{at} or type(a{at} := {name}._array) is not kind{at} or a{at}.dtype is not d{at}"
    )
    if array.shape or type(array) is NDARRAY:
        different += f" or a{at}.shape != {array.shape} or a{at}.strides != {array.strides}"
    has = "is not" if tensor._edge is None else "is"
    different += f" or {name}._edge {has} None"
    lines = [f"    if {different}:", "        return RETRY"]
    lines += [f"    if {name}._storage is not None and {name}._storage.inference:", "        return RETRY"]
    return lines


def _versions(found: Recorded, tensors: Any, texts: dict[int, str]) -> str:
    """Write the versions of the memory that is saved: of inputs that are saved, and of results that are."""
    memories = {value.buffer: value for value in found.saved}
    entries = []
    inputs = found.forward.inputs
    for at, value in enumerate(inputs):
        if value.buffer in memories:
            entries.append(f"((s := storage_of(t{at})), s.version, a{at})")
    for identity, out in found.outputs.items():
        if not out.given and found.forward.results[out.index].buffer in memories:
            entries.append(f"(storage_of({texts[identity]}), 0, {texts[identity]}._array)")
    return f"({''.join(f'{entry}, ' for entry in entries)})"


def _chooser(found: Recorded) -> Callable[[Any], list[Any]]:
    """Return what finds the results that require gradients in another run of the function, in the order of the seeds."""
    order: list[str] = []
    by_identity = {identity: out for identity, out in found.outputs.items() if out.requires_grad}
    paths: dict[int, str] = {}

    def walk(tree: Any, path: str) -> None:
        if type(tree) in EXACT:
            paths.setdefault(id(tree), path)
        elif isinstance(tree, (tuple, list)):
            for at, one in enumerate(tree):
                walk(one, f"{path}[{at}]")
        elif type(tree) is dict:
            for name, one in tree.items():
                walk(one, f"{path}[{name!r}]")

    walk(found.result, "r")
    order = [paths[identity] for identity in by_identity]
    text = f"def choose(r):\n    return [{', '.join(order)}]"
    return emit("results of a compiled function", text, {})["choose"]  # type: ignore[no-any-return]


def compiled(function: Callable[..., Any], fullgraph: bool = False) -> Callable[..., Any]:
    """Return a function that does what another does, by compiled programs where it can."""
    inner = Compiled(function, fullgraph)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return inner(args, kwargs)

    call._compiled = inner  # type: ignore[attr-defined]
    return call


__all__ = ["LEAF", "Output", "Tensor", "compiled"]
