"""Derivatives of the backward of a compiled call, compiled on demand.

Note [Graphs of the backward]
Where a graph of the backward is wanted (`create_graph=True`, or a transform around a transform), the gradients are a function of the
tensors of the call and of the gradients that come in: the function runs again, and `autograd.grad` differentiates it. This function is
recorded as any other is, and its own backward with it: so a derivative of any order is a record of the record before. Each choice of
results that have gradients has a record. It is made when such a graph is wanted for the second time, and used after a trial. If its own
backward comes with some gradients only, it is made again with a backward for these.
Gradients that are batches or duals, as in the rows of a Jacobian, leave their levels first (Note [Below a level] in `_inside.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import autograd
from .._modes import PLAIN, current_mode, using
from ._apart import one_at_a_time
from ._compiled import usual
from ._inside import Crossing, OutsideError, below_level, gives_gradients_outside
from ._recording import record as record_call
from ._runner import RETRY, Record, runner
from ._sizes import read_from_memory
from ._traced import UnrecordableError
from ._trees import leaves, swapped
from ._verifying import Trial


class Wanted:
    """What is known of a derivative that has no record yet: of which results alone its own gradients have come."""

    def __init__(self) -> None:
        self.patterns: set[frozenset[int]] = set()


class Place:
    """Stands for a tensor in the arguments of a call."""

    def __init__(self, at: int) -> None:
        self.at = at


def gradients_of(call: Any, parts: Sequence[Any], create_graph: bool, in_eager: Callable[[], Any]) -> Any:
    """Return the gradients of a call, of the gradients of its results, as tensors; with a graph if that is wanted."""
    record = call.record
    if record.found.generators or record.has_effects or record.found.numbers or usual(current_mode())[1] is not None:
        return in_eager()
    seeds = [part for part in parts if part is not None]
    try:
        crossings, args, kwargs = _below_all(([call.tensors[at] for at in range(record.given)], seeds), create_graph)
    except OutsideError:
        return in_eager()
    pattern = tuple(None if part is None else create_graph and part._edge is not None for part in parts)
    key = create_graph, pattern, tuple(one.facts for one in crossings)
    known = record.derivatives.get(key)
    if known is None:
        record.derivatives[key] = Wanted()
    elif type(known) is Wanted:
        record.derivatives[key] = False
        return _first(record, key, known, _Given(call, parts, crossings, args, kwargs), in_eager)
    elif known:
        with call.drawing_as_then(), using(transforms=_outside(crossings)):
            found = known(PLAIN, args, kwargs)
        if found is not RETRY:
            for crossing in reversed(crossings):
                found = crossing.entered(found)
            return found
    return in_eager()


class _Given(NamedTuple):
    """What a derivative is recorded of: a call, the gradients of its results, and the levels that these have left."""

    call: Any
    parts: Sequence[Any]
    crossings: list[Crossing]
    args: Any
    kwargs: Any


def _below_all(args: Any, graphs: bool) -> tuple[list[Crossing], Any, dict[str, Any]]:
    """Let arguments leave all levels in which any of them is."""
    transforms, kwargs = current_mode().transforms, dict[str, Any]()
    crossings: list[Crossing] = []
    while any(one.level is not None for one in transforms):
        crossing = Crossing(transforms, graphs)
        below = crossing.left(args, kwargs)
        if any(crossing.flags):
            args, kwargs = below
            crossings.append(crossing)
        transforms = crossing.outside
    return crossings, args, kwargs


def _outside(crossings: Sequence[Crossing]) -> tuple[Any, ...]:
    left = {one.level for one in crossings}
    return tuple(one for one in current_mode().transforms if one.level not in left or one.level is None)


def _first(record: Any, key: Any, wanted: Wanted, given: _Given, in_eager: Callable[[], Any]) -> Any:
    """Record the derivative and try it; return what eager gives."""
    call, crossings = given.call, given.crossings
    with one_at_a_time, call.drawing_as_then(), using(transforms=_outside(crossings)):
        try:
            run = _recorded(record, wanted, key[0], given)
            trial = Trial(run, PLAIN, given.args, given.kwargs, RETRY)
        except (UnrecordableError, Exception):  # eager will say it
            run = None
    found = in_eager()
    if run is None or (key[0] and crossings and gives_gradients_outside(run.record)):
        return found
    expected: Any = list(found)
    for crossing in crossings:
        expected = crossing.result_below(expected)
    if trial.difference(expected) is None:
        record.derivatives[key] = run

        def miss(pattern: frozenset[int]) -> None:
            if pattern not in wanted.patterns:
                wanted.patterns.add(pattern)
                record.derivatives[key] = wanted

        run.record.miss = miss
    return found


def _recorded(record: Any, wanted: Wanted, create_graph: bool, given: _Given) -> Any:
    call, parts, crossings, args, kwargs = given
    function = _twice(record, call, [at for at, part in enumerate(parts) if part is not None], create_graph)
    for crossing in crossings:
        function = below_level(function, crossing.facts)
    captured = list(call.tensors[record.given :])
    places: list[tuple[str, Any]] = []
    facts: list[tuple[str, str, Any]] = []
    leaves(args, "args", places, facts)
    leaves(kwargs, "kwargs", places, facts)
    paths: dict[int, tuple[str, Any]] = {}
    for path, tensor in places:
        if not any(tensor is one for one in captured):
            paths.setdefault(id(tensor), (path, tensor))
    count = len(paths)
    paths |= {id(one): ("", one) for one in captured}
    with using(**PLAIN._asdict()), read_from_memory(record.reads_sizes):
        tensors = [one for _, one in paths.values()]
        found = record_call(lambda _: function(*args, **kwargs), tensors, count, patterns=wanted.patterns)
        made = Record(function, found, count, lambda function, args, kwargs: True)
        return runner(made, PLAIN, [path for path, _ in paths.values()], places, [])


def _twice(record: Any, call: Any, arrived: list[int], create_graph: bool) -> Callable[..., Any]:
    """Return the function that gives the gradients: of the tensors that the call was given, and of gradients of its results."""
    places = {id(call.tensors[at]): Place(at) for at in range(record.given)}
    args, kwargs = swapped(call.args, places), swapped(call.kwargs, places)
    captured = list(call.tensors[record.given :])

    def gradients(given: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        found = {id(place): tensor for place, tensor in zip(places.values(), given, strict=True)}
        with using(grad=True):
            outs = record.again(call, swapped(args, found), swapped(kwargs, found))
        every = [*given, *captured]
        wanted = [every[at] for at in record.differentiated]
        chosen = [outs[at] for at in arrived]
        return list(autograd.grad(chosen, wanted, seeds, create_graph=create_graph, allow_unused=True))

    return gradients
