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

from .._modes import NO_GRAD, PLAIN, current_mode
from ._guards import compile_guards
from ._purity import analyse
from ._recording import record
from ._runner import RETRY, Record, runner
from ._traced import UnrecordableError
from ._trees import UnknownError, leaves

LIMIT = 16  # records of one function
_lock = threading.RLock()  # one recording at a time: tensors that others share hold traced arrays meanwhile


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
        found = record(lambda: self.function(*args, **kwargs), tensors, given)
        holds = compile_guards(verdict.guards)
        made = Record(self.function, found, given, holds)
        return runner(made, mode, [path for path, _ in paths.values()], found_tensors, facts)


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


def compiled(function: Callable[..., Any], fullgraph: bool = False) -> Callable[..., Any]:
    """Return a function that does what another does, by compiled programs where it can."""
    inner = Compiled(function, fullgraph)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return inner(args, kwargs)

    call._compiled = inner  # type: ignore[attr-defined]
    return call

