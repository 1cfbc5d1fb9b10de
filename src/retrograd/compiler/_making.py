"""How a record is made of a call: what the call brings, what the function reads besides, and the recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import active_count
from typing import Any

from .._places import at_line
from ..amp.grad_scaler import GradScaler
from ..tensor._functions.generators import Generator, default_generator
from ._guards import compile_guards
from ._numbers import Free, NumberNeededError, ScaleOf, constants_of, in_place_of
from ._optimizers import NotYetError, Stepped, stepped
from ._purity import Verdict, analyse
from ._recording import Recorded, record
from ._runner import Record, runner
from ._splitting import Obstacle
from ._traced import UnrecordableError
from ._trees import containers, leaves, with_numbers


class CutError(UnrecordableError):
    """A result is computed of another: a graph with one node for both would not lead from one to the other."""

    def __init__(self, found: Recorded) -> None:
        super().__init__("a result is computed of another one, whose gradient may be asked for")
        self.found = found


def made_record(
    function: Callable[..., Any],
    mode: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    free: frozenset[Any],
    patterns: Iterable[frozenset[int]],
) -> Any:
    """Record a call, and return what runs the record.

    `free` are the keys of numbers that are inputs, `patterns` the results that may get gradients alone.
    """
    places: list[tuple[str, Any]] = []
    facts: list[tuple[str, str, Any]] = []
    leaves(args, "args", places, facts)
    leaves(kwargs, "kwargs", places, facts)
    verdict = analyse(function, args, kwargs, free)
    _need_pure(verdict)
    if mode.autocast is not None and any(isinstance(value, type) for _, value in verdict.library_objects):
        raise UnrecordableError("a custom Function under autocast: its backward may run under another mode")
    optimizers = _optimizers_of(verdict)
    paths, given = _paths(places, verdict, optimizers)
    streams = _streams(facts, verdict)
    own = {id(value): value for _, value in streams if value is not default_generator}
    there: dict[int, str] = {}
    numbers, call = _numbers(function, args, kwargs, verdict, there)
    tensors = [tensor for _, tensor in paths.values()]
    found = record(call, tensors, given, optimizers, [*own.values()], patterns, numbers)
    if found.behind:
        raise CutError(found)
    checked = {("args", "length"), ("kwargs", "keys"), *((path, "type") for path, _ in places)}  # by the runner itself
    guards = [one for one in verdict.guards if (one.source.text, one.kind) not in checked]
    made = Record(function, found, given, compile_guards(guards))
    made.guards = guards
    made.constants = constants_of(verdict.guards)
    found_at = [path for path, _ in paths.values()]
    return runner(made, mode, found_at, places, _without(facts, numbers), streams, there, verdict.returned)


def _need_pure(verdict: Verdict) -> None:
    if verdict.pure:
        return
    place = "" if verdict.place is None else f" ({at_line(*verdict.place)})"
    error = UnrecordableError(f"{verdict.reason}{place}")
    if verdict.at is not None:
        error.obstacle = Obstacle(verdict.at.lineno, verdict.at.col_offset)
    raise error


def _paths(
    places: list[tuple[str, Any]], verdict: Verdict, optimizers: list[Stepped]
) -> tuple[dict[int, tuple[str, Any]], int]:
    """Return by their ids the tensors of a call with the expressions that lead to them, and how many of them are given.

    A tensor that is captured has no expression, also if it is given: it must be the very tensor in every call.
    """
    captured = {id(tensor) for _, tensor in verdict.tensors}
    paths: dict[int, tuple[str, Any]] = {}
    for path, tensor in places:
        if id(tensor) not in captured:
            paths.setdefault(id(tensor), (path, tensor))
    given = len(paths)
    for _, tensor in verdict.tensors:
        paths.setdefault(id(tensor), ("", tensor))
    for one in optimizers:
        for number, tensor in enumerate(one.tensors):
            if id(tensor) in paths:
                raise UnrecordableError("the state of an optimizer is used elsewhere, too")
            paths[id(tensor)] = (f"state{number}", tensor)
    return paths, given


def _optimizers_of(verdict: Verdict) -> list[Stepped]:
    """Return the optimizers of which a function may take steps that can be part of a program."""
    if not any(effect.kind == "step" for effect in verdict.effects):
        return []
    return stepped([value for _, value in verdict.library_objects])


def _streams(facts: list[tuple[str, str, Any]], verdict: Verdict) -> list[tuple[str, Any]]:
    """Return the generators that a function may draw from with the expressions that lead to them, "" for captured ones."""
    used = [(source.root, value) for source, value in verdict.library_objects if type(value) is Generator]
    found = [("", value) for root, value in used if root not in ("args", "kwargs")]
    return found + [(path, value) for path, kind, value in facts if kind == "generator"]


def _numbers(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    verdict: Verdict,
    there: dict[int, str],
) -> tuple[list[Free], Callable[[list[Any]], Any]]:
    """Return the numbers of Python's that are inputs, and what calls the function with what stands for them.

    That call notes in `there` the containers that it hands over, by their ids.
    """
    read = [number for number in verdict.numbers if not number.given]
    for number in read:
        assert number.source.base is not None
        number.holder = number.source.base.read(function, args, kwargs)
    if read and active_count() > 1:  # other threads would see what stands for them
        raise NumberNeededError("a number of Python's, while other threads run", frozenset(one.key for one in read))
    numbers = [*verdict.numbers, *_scales(verdict)]

    def call(stand_ins: list[Any]) -> Any:
        pairs = list(zip(numbers, stand_ins, strict=True))
        by_path = {one.source.text: thing for one, thing in pairs if one.given}
        own_args, own_kwargs = with_numbers(args, "args", by_path), with_numbers(kwargs, "kwargs", by_path)
        containers(own_args, "args", there)
        containers(own_kwargs, "kwargs", there)
        with in_place_of([(one, thing) for one, thing in pairs if one in read]):
            return function(*own_args, **own_kwargs)

    return numbers, call


def _scales(verdict: Verdict) -> list[Free]:
    """Return the scales of the GradScalers that a function uses, which are inputs of its program."""
    found: list[Free] = []
    for _, value in verdict.library_objects:
        if type(value) is GradScaler and value._enabled:
            if value._scale is None:
                raise NotYetError("a GradScaler has no scale yet")
            if value._progress:
                raise UnrecordableError("a GradScaler in the middle of an iteration")
            found.append(ScaleOf(value))
    return found


def _without(facts: list[tuple[str, str, Any]], numbers: list[Free]) -> list[tuple[str, str, Any]]:
    """Return facts about arguments of which only the type of such numbers must be the same."""
    free = {one.source.text: type(one.thing) for one in numbers if one.given}
    return [(path, "number", free[path]) if path in free else (path, kind, value) for path, kind, value in facts]
