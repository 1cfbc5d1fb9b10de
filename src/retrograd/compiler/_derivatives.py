"""Derivatives of the backward of a compiled call, compiled on demand.

Note [Graphs of the backward]
Where a graph of the backward is wanted (`create_graph=True`, or a transform around a transform), the gradients are a function of the
tensors of the call and of the gradients that come in: the function runs again, and `autograd.grad` differentiates it. This function is
recorded as any other is, and its own backward with it: so a derivative of any order is a record of the record before. Each choice of
results that have gradients has a record. It is made when such a graph is wanted for the second time, and used after a trial. If its own
backward comes with some gradients only, it is made again with a backward for these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd
from .._modes import PLAIN, using
from ._apart import one_at_a_time
from ._sizes import read_from_memory
from ._traced import UnrecordableError
from ._trees import swapped


class Wanted:
    """What is known of a derivative that has no record yet: of which results alone its own gradients have come."""

    def __init__(self) -> None:
        self.patterns: set[frozenset[int]] = set()


class Place:
    """Stands for a tensor in the arguments of a call."""

    def __init__(self, at: int) -> None:
        self.at = at


def gradients_with_graph(call: Any, parts: Sequence[Any], in_eager: Callable[[], Any]) -> Any:
    """Return the gradients of a call, of the gradients of its results, as tensors that have a graph."""
    from ._runner import RETRY

    record = call.record
    seeds = [part for part in parts if part is not None]
    if (
        record.found.generators
        or record.has_effects
        or record.found.numbers
        or not all(type(one._array) is np.ndarray or isinstance(one._array, np.generic) for one in seeds)
    ):
        return in_eager()
    key = tuple(None if part is None else part._edge is not None for part in parts)
    known = record.derivatives.get(key)
    args = [call.tensors[at] for at in range(record.given)], seeds
    if known is None:
        record.derivatives[key] = Wanted()
    elif type(known) is Wanted:
        record.derivatives[key] = False
        return _first(record, key, known, call, parts, args, in_eager)
    elif known:
        with call.drawing_as_then():
            found = known(PLAIN, args, {})
        if found is not RETRY:
            return found
    return in_eager()


def _first(
    record: Any, key: Any, wanted: Wanted, call: Any, parts: Sequence[Any], args: Any, in_eager: Callable[[], Any]
) -> Any:
    """Record the derivative and try it; return what eager gives."""
    from ._runner import RETRY
    from ._verifying import Trial

    with one_at_a_time, call.drawing_as_then():
        try:
            run = _recorded(record, wanted, call, parts, args)
            trial = Trial(run, PLAIN, args, {}, RETRY)
        except (UnrecordableError, Exception):  # eager will say it
            return in_eager()
    found = in_eager()
    if trial.difference(list(found)) is None:
        record.derivatives[key] = run

        def miss(pattern: frozenset[int]) -> None:
            if pattern not in wanted.patterns:
                wanted.patterns.add(pattern)
                record.derivatives[key] = wanted

        run.record.miss = miss
    return found


def _recorded(record: Any, wanted: Wanted, call: Any, parts: Sequence[Any], args: Any) -> Any:
    from ._recording import record as record_call
    from ._runner import Record, runner

    function = _twice(record, call, [at for at, part in enumerate(parts) if part is not None])
    given, seeds = args
    captured = list(call.tensors[record.given :])
    places = [(f"args[0][{at}]", one) for at, one in enumerate(given)]
    places += [(f"args[1][{at}]", one) for at, one in enumerate(seeds)]
    paths: dict[int, tuple[str, Any]] = {}
    for path, tensor in places:
        if not any(tensor is one for one in captured):
            paths.setdefault(id(tensor), (path, tensor))
    count = len(paths)
    paths |= {id(one): ("", one) for one in captured}
    with using(grad=True, recording=None, transforms=()), read_from_memory(record.reads_sizes):
        tensors = [one for _, one in paths.values()]
        found = record_call(lambda _: function(given, seeds), tensors, count, patterns=wanted.patterns)
        made = Record(function, found, count, lambda function, args, kwargs: True)
        return runner(made, PLAIN, [path for path, _ in paths.values()], places, [])


def _twice(record: Any, call: Any, arrived: list[int]) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]]:
    """Return the function that gives the gradients: of the tensors that the call was given, and of gradients of its results."""
    places = {id(call.tensors[at]): Place(at) for at in range(record.given)}
    args, kwargs = swapped(call.args, places), swapped(call.kwargs, places)
    captured = list(call.tensors[record.given :])

    def gradients(given: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        found = {id(place): tensor for place, tensor in zip(places.values(), given, strict=True)}
        outs = record.differentiable(record.function(*swapped(args, found), **swapped(kwargs, found)))
        every = [*given, *captured]
        wanted = [every[at] for at in record.differentiated]
        chosen = [outs[at] for at in arrived]
        return list(autograd.grad(chosen, wanted, seeds, create_graph=True, allow_unused=True))

    return gradients
