"""Records: a program with its guards, and the function that checks these and runs that, written as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from types import CellType
from typing import Any

import numpy as np

from .. import _device, _dtypes, _settings
from .._device import chosen_device
from .._dtypes import get_default_dtype
from .._generated import emit
from .._graph.guards import Freed
from .._graph.node import Slot
from .._modes import NO_GRAD, PLAIN, Mode, using
from ..tensor._aliasing.view_nodes import detached, replay, replaying_node
from ..tensor._aliasing.views import MULTIPLE, register_view, wrote
from ..tensor._aliasing.views import NO_GRAD as WITHOUT_GRADIENTS
from ..tensor._base import LEAF, edge_of, materialise, storage_of, wrap
from ..tensor._functions.generators import default_generator
from ..tensor._recording.flat import EXACT
from ..tensor._recording.record import mark_inference
from ._backward import Call, CompiledBackward
from ._groups import grouped
from ._guards import Guard, compile_guards, same
from ._recorder import Streams
from ._recording import Recorded, stop_at_optimizers
from ._sizes import are_read
from ._trees import check_lines, rebuilt, swapped

NDARRAY = np.ndarray
FEW = 4  # tensors of which each pair is compared
RETRY = object()  # what a record gives back if it is not for a call


class Record:
    """A program with its guards."""

    def __init__(self, function: Callable[..., Any], found: Recorded, given: int, holds: Callable[..., bool]) -> None:
        self.function, self.found, self.holds = function, found, holds
        self.given = given  # how many of the tensors are arguments; the others are captured
        self.differentiated = found.differentiated
        self.recorded = found.forward, found.backward  # as they were before groups were made
        self.has_effects = found.has_effects
        hosted = any(step.kind == "host" for step in found.forward.steps)
        self.takes_steps = hosted or any(one.used for one in found.optimizers)
        views = any(out.kind not in ("given", "made") for out in found.outputs.values())
        self.stays_outside = self.has_effects or found.touches_grads or views  # it is not for the inside of transforms
        self.reads_sizes = are_read()  # see Note [Sizes] in `_sizes.py`
        found.forward = grouped(found.forward)
        self.program = found.forward.function("a compiled function")
        self.backwards: dict[
            frozenset[int], Any
        ] = {}  # by the results whose gradients come: the program, its gradients, and what it reads, as `saved`
        inputs, results = found.shared_memory()
        # which of the memory that is saved and may be written from outside a backward reads: tensors by their places, results
        self.saved = [at for at, _ in inputs], list(range(len(results)))
        seeds = {one: at for at, one in enumerate(one for one, out in found.outputs.items() if out.requires_grad)}
        self.seeds = [seeds.get(identity) for identity, _ in results]  # of these results: which gradient is theirs
        self.kinds: list[tuple[Any, Any]] = []  # of the gradients that come: shapes and dtypes
        self.guards: Sequence[Guard] = ()
        self.cells: Sequence[CellType] = ()  # of the function, which hold something else in every call
        if found.backward is not None:
            backward, found.backward = found.backward, grouped(found.backward)
            every = frozenset(range(found.seeds))
            self.kinds = [(value.shape, value.dtype) for value in backward.inputs[len(found.saved) :]]
            for pattern, (program, gradients) in {every: (backward, found.gradients), **found.partial}.items():
                read = {value.buffer for step in program.steps for value in step.values}
                read.update(value.buffer for value in program.results)
                reads = (
                    [at for at, buffer in inputs if buffer in read],
                    [at for at, (_, buffer) in enumerate(results) if buffer in read],
                )
                if pattern == every or pattern not in found.likely:
                    program = found.backward if pattern == every else grouped(program)
                self.backwards[pattern] = program.function("the backward of a compiled function"), gradients, reads
        self.likely = found.likely  # patterns whose backwards should be compiled when they are asked for
        self.miss: Callable[[frozenset[int]], None] = lambda pattern: (
            None
        )  # is told of results that get gradients alone
        self.derivatives: dict[Any, Any] = {}  # see `_derivatives.py`
        # Numbers of Python's with which it was made, by their places, as long as it was not tried with others. See Note [Numbers].
        self.untried = {at: one.thing for at, one in enumerate(found.numbers) if not one.is_tried}
        self.constants: list[Any] = []  # numbers of Python's that it takes for constants: see `constants_of`
        self.differentiable = _chooser(found)
        self.tensors: Callable[..., list[Any]]  # the tensors of a call, behind them their gradients
        self.is_for: Callable[..., Any]  # whether it is for a call, whatever the numbers there; else RETRY
        self.streams: Callable[..., list[Any]]  # the streams of random numbers from which it draws
        self.numbers: Callable[..., tuple[Any, ...]]  # Python's numbers that are inputs
        self.mode: Mode  # under which it was recorded
        self.holds_in_copies: Callable[..., bool] | None = None  # likewise `holds`, for copies of the function
        self.default_dtype = get_default_dtype()

    def still_holds(self, args: Any, kwargs: Any) -> bool:
        """Tell whether the Python state that the function reads is as it was."""
        return self.holds(self.function, args, kwargs)

    def backward_of(self, pattern: frozenset[int]) -> Any:
        """Return the backward for gradients of some results, which may be the sum of those of each; None if there is none."""
        known = self.backwards.get(pattern)
        if known is None and len(pattern) > 1:
            alone = [self.backwards.get(frozenset({at})) for at in sorted(pattern)]
            if None not in alone:
                known = self.backwards[pattern] = _sum_of(alone)
                self.likely.add(pattern)
        if (known is None or pattern in self.likely) and not stop_at_optimizers.get():  # which is so in a trial
            self.miss(pattern)
        return known

    def with_zeros(self, pattern: frozenset[int]) -> Any:
        """Return the backward of all results with zeros for those that get no gradients; it gives None where these make NaN."""
        every = frozenset(range(self.found.seeds))
        run, places, reads = self.backwards[every]
        reached = frozenset().union(*[self.found.reached[at] for at in pattern])
        gradients = [place if at in reached else None for at, place in enumerate(places)]
        kinds = self.kinds

        def program(*given: Any) -> Any:
            saved, seeds = given[: -len(pattern)], iter(given[-len(pattern) :])
            found = run(*saved, *[next(seeds) if at in pattern else np.zeros(*kind) for at, kind in enumerate(kinds)])
            wanted = [] if found is None else [found[place] for place in gradients if place is not None]
            return found if all(np.isfinite(one).all() for one in wanted) else None

        return program, gradients, reads

    def is_compiled_for(self, pattern: frozenset[int]) -> bool:
        """Tell whether there is a compiled backward of its own for gradients of some results."""
        return pattern in self.backwards and pattern not in self.likely

    def is_as_then(self, call: Call) -> bool:
        """Tell whether the function would read what it has read in a call."""
        device = chosen_device()
        if get_default_dtype() is not self.default_dtype or (device is not None and device.type != "cpu"):
            return False
        if self.cells and self.holds_in_copies is None:
            others = [one for one in self.guards if one.source.text != "function" or one.kind != "identity"]
            self.holds_in_copies = compile_guards(others)
        holds = self.holds_in_copies or self.holds
        return holds(call.function(), call.args, call.kwargs) and all(
            map(same, self.numbers(call.args, call.kwargs), call.numbers)
        )

    def again(self, call: Call, args: Any, kwargs: Any) -> list[Any]:
        """Run the function of a call under the mode of this, whatever the mode is now; return the results that require gradients."""
        fields = self.mode._asdict()
        del fields["transforms"], fields["recording"]
        with using(**fields):
            return self.differentiable(call.function()(*args, **kwargs))


def _sum_of(alone: list[Any]) -> Any:
    """Return the backward of several results of those of each: the program, the places of its gradients, and what it reads."""
    each = [gradients for _, gradients, _ in alone]
    reached = [at for at, places in enumerate(zip(*each, strict=True)) if any(place is not None for place in places)]
    gradients = [reached.index(at) if at in reached else None for at in range(len(each[0]))]
    reads = tuple(sorted(set().union(*[read[kind] for _, _, read in alone])) for kind in (0, 1))

    def program(*given: Any) -> Any:
        saved, seeds = given[: -len(alone)], given[-len(alone) :]
        totals: dict[int, Any] = {}
        for (run, places, _), seed in zip(alone, seeds, strict=True):
            found = run(*saved, seed)
            if found is None:
                return None
            for at, place in enumerate(places):
                if place is not None:
                    totals[at] = totals[at] + found[place] if at in totals else found[place]
        return [totals[at] for at in reached]

    return program, gradients, reads


def code_of(record: Record) -> str:
    """Return what was recorded, forward and backward, as Python: the derivative as source."""
    names = ("forward", "backward")
    parts = [
        one.text(name, readable=True)[0] for name, one in zip(names, record.recorded, strict=True) if one is not None
    ]
    return "\n\n\n".join(parts) + "\n"


def runner(
    record: Record,
    mode: Any,
    paths: list[str],
    places: Any,
    facts: Any,
    streams: Sequence[tuple[str, Any]] = (),
    there: dict[int, str] | None = None,
    kept: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Write the function that runs a record, or gives RETRY.

    `paths` lead to the tensors of the record, "" to those that are captured; `places` are all places where a tensor was given, `streams`
    all generators with their places. `there` leads to the containers that were given, `kept` are others that were there before the call
    and are returned.
    """
    found = record.found
    scope: dict[str, Any] = {
        "RETRY": RETRY, "ndarray": NDARRAY, "mode_of_record": mode,
        "asarray": np.asarray, "wrap": wrap, "edge_of": edge_of, "Call": Call,
        "record": record, "Node": CompiledBackward, "program": record.program, "holds": record.holds, "function": record.function,
        "dtypes": _dtypes, "the_dtype": get_default_dtype(), "settings": _settings, "the_threads": _settings._threads, "Slot": Slot,
        "device": chosen_device, "entered": _device._entered.get, "chosen": _device._base.get,
        "storage_of": storage_of, "wrote": wrote, "LEAF": LEAF, "Freed": Freed,
        "view_of": view_of, "detached": detached, "none": frozenset(), "Streams": Streams,
        "mark_inference": mark_inference, "swapped": swapped, "nothing": {},
    }  # fmt: skip
    record.mode = mode
    lines: list[str] = []
    different = ["mode is not mode_of_record", *check_lines(facts, scope)]
    different += [
        "(entered() or chosen() is not None) and device().type != 'cpu'",
        "dtypes._default is not the_dtype",
        "settings._threads != the_threads",
    ]
    lines += _refusing(different)
    lines += _tensor_lines(record, paths, places, scope)
    generator_lines = _generator_lines(found, streams, scope)
    lines += generator_lines
    lines += _refusing(["not holds(function, args, kwargs)"])
    if record.untried:
        text = "\n".join(["def is_for(mode, args, kwargs):", *[f"    {line}" for line in lines], "    return True"])
        record.is_for = emit("the guards of a compiled function", text, scope)["is_for"]
    numbers = _number_lines(record, scope, lines)
    if found.gives_back or _keeps_streams(found):
        lines.append(f"streams = Streams({_streams(found, scope)})")
    if _may_run_again(record):
        copies = "".join(f"a{at}.copy('K'), " for at in found.writes)
        held = "".join(f"None if (e := t{at}._extra) is None else e.grad, " for at in found.grads)
        lines.append(f"before = ({copies}), ({held})")
    call = f"found = program({', '.join([*[f'a{at}' for at in range(len(found.tensors))], *numbers])})"
    if found.before_call:
        lines += ["try:", f"    {call}", "except Exception:", f"    {_wrote(found.before_call)}", "    raise"]
    else:
        lines.append(call)
    put_back = ["    streams.put_back()"] if found.gives_back else []
    lines += ["if found is None:", *put_back, "    return RETRY"]
    lines += _effect_lines(found)
    captured = [at for at, path in enumerate(paths) if not path]
    texts = _result_lines(record, lines, scope, captured, _staying(paths), _kept_arguments(facts))
    there = {} if there is None else there
    for number, one in enumerate(kept):
        scope[f"returned_{number}"] = one
        there.setdefault(id(one), f"returned_{number}")
    for number, (function, given, named) in enumerate(found.after):
        scope |= {f"after{number}": function, "on_trial": stop_at_optimizers.get}
        tree = rebuilt((given, named), lambda tensor: texts[id(tensor)], scope, dict(there))
        lines += ["if not on_trial():", f"    given, named = {tree}", f"    after{number}(*given, **named)"]
    lines.append(f"return {rebuilt(found.result, lambda tensor: texts[id(tensor)], scope, there)}")
    text = "\n".join(["def run(mode, args, kwargs):", *[f"    {line}" for line in lines]])
    run: Any = emit("a call of a compiled function", text, scope)["run"]
    grads = [f"t{owner}._extra.grad" for owner in found.owners]
    text = "\n".join(
        [
            "def tensors(args, kwargs):",
            *[f"    {line}" for line in _finding_lines(paths, found, scope)],
            f"    return [{', '.join([*[f't{at}' for at in range(len(paths))], *grads])}]",
        ]
    )
    record.tensors = emit("tensors of a call", text, scope)["tensors"]
    finding = [f"    {line}" for line in generator_lines if " = " in line]
    text = "\n".join(["def streams(args, kwargs):", *finding, f"    return {_streams(found, scope)}"])
    record.streams = emit("streams of a call", text, scope)["streams"]
    read = "".join(f"{one.expression(_holder(found, at), scope)}, " for at, one in enumerate(found.numbers))
    record.numbers = emit("numbers of a call", f"def numbers(args, kwargs):\n    return ({read})", scope)["numbers"]
    found.result = None  # tensors of the recording
    found.tensors = found.tensors[record.given :]
    run.record = record
    return run  # type: ignore[no-any-return]


def _finding_lines(paths: list[str], found: Recorded, scope: dict[str, Any]) -> list[str]:
    """Write how the tensors of a call are found, but for gradients."""
    lines = [f"t{at} = {path}" for at, path in enumerate(paths) if path and not path.startswith("state")]
    captured = [at for at, path in enumerate(paths) if not path]
    if captured:  # variables are read sooner than names of the scope
        scope["captured"] = tuple([found.tensors[at] for at in captured])
        lines.append(f"{''.join(f't{at}, ' for at in captured)}= captured")
    at = len(paths) - sum(len(one.tensors) for one in found.optimizers)
    for number, one in enumerate(found.optimizers):  # their states stand behind all others
        scope[f"find{number}"] = one.finder()
        lines.append(f"state = find{number}()")
        lines += _refusing(["state is None"])
        if one.tensors:
            lines.append(f"{''.join(f't{at + k}, ' for k in range(len(one.tensors)))}= state")
        at += len(one.tensors)
    return lines


def _number_lines(record: Record, scope: dict[str, Any], lines: list[str]) -> list[str]:
    """Write how the numbers of optimizers are computed, and return their names in the order of the program's inputs."""
    found = record.found
    places = {id(tensor): at for at, tensor in enumerate(found.tensors)}
    names = {at: f"n{at}" for at in range(len(found.generators) + len(found.numbers))}
    lines += _free_number_lines(record, scope)
    for number, one in enumerate(found.optimizers):
        if not one.used:
            continue
        scope[f"count{number}"] = one.counter()
        counts = [places[id(one.optimizer.state[param]["step"])] for param in one.counts]
        # what cannot be computed raises in eager, when gradients are there
        lines += ["try:", f"    now = count{number}({', '.join(f'a{at}' for at in counts)})"]
        lines += ["except Exception:", "    return RETRY"]
        lines += _refusing(["now is None"])
        own = [f"count_of_{at}" for at in counts]
        for _, _, place in one.used:
            names[place] = f"n{place}"
            own.append(names[place])
        lines.append(f"{''.join(f'{name}, ' for name in own)}= now")
    return [names[place] for place in sorted(names)]


def _free_number_lines(record: Record, scope: dict[str, Any]) -> list[str]:
    """Write how numbers of Python's are found."""
    found, lines = record.found, []
    scope |= {"same": same, "untried": record.untried, "on_trial": stop_at_optimizers.get}
    for number, one in enumerate(found.numbers):
        at, holder = len(found.generators) + number, _holder(found, number)
        expression = one.expression(holder, scope)
        lines += _refusing([refused]) if (refused := one.refused(holder)) else []
        lines.append(f"n{at} = {expression}")
        if not one.is_tried:
            lines += _refusing([f"untried and not same(n{at}, untried.get({number}, n{at})) and not on_trial()"])
    return lines


def _holder(found: Recorded, number: int) -> str:
    """Name what holds a number of Python's."""
    return f"holder{len(found.generators) + number}"


def _generator_lines(found: Recorded, places: Sequence[tuple[str, Any]], scope: dict[str, Any]) -> list[str]:
    """Write how generators are found: one that was given twice must be so again, and different ones must be different."""
    scope["default_stream"] = default_generator
    names = {id(default_generator): "default_stream"}
    lines = []
    for path, generator in places:
        if id(generator) in names:
            lines += _refusing([f"{path} is not {names[id(generator)]}"]) if path else []
            continue
        name = names[id(generator)] = f"n{len(names) - 1}"
        if path:
            lines.append(f"{name} = {path}")
        else:
            scope[name] = generator
    if any(path for path, _ in places):
        lines += _refusing([f"len({{{', '.join(f'id({one})' for one in names.values())}}}) != {len(names)}"])
    return lines


def _streams(found: Recorded, scope: dict[str, Any]) -> str:
    """Write the streams from which a program draws."""
    scope["default_stream"] = default_generator
    return f"[{', '.join([*['default_stream'] * found.draws, *[f'n{at}' for at in range(len(found.generators))]])}]"


def _keeps_streams(found: Recorded) -> bool:
    """Tell whether the backward may want to run the function again, with the random numbers that it drew."""
    return bool((found.draws or found.generators) and found.seeds and not found.freed)


def _refusing(conditions: list[str]) -> list[str]:
    lines = []
    for condition in conditions:
        lines += [f"if {condition}:", "    return RETRY"]
    return lines


def _tensor_lines(record: Record, paths: list[str], places: Any, scope: dict[str, Any]) -> list[str]:
    """Write how tensors are found, and what must hold of them.

    `looked` has what was found last of tensors that stay: their arrays and storages, and where these lie (`_lying`). It is exchanged as a
    whole, since other threads may run the record, too.
    """
    found = record.found
    lines = _finding_lines(paths, found, scope)
    names: dict[int, str] = {}
    count = len(found.tensors) - len(found.owners)
    staying = _staying(paths)
    if staying:
        nothing = (None,) * len(staying)
        scope["looked"] = [(nothing, nothing, NOWHERE)]
        lines += ["known, storages, lying = looked[0]", "moved = False"]
    for at, tensor in enumerate(found.tensors):
        name = names[id(tensor)] = f"t{at}"
        if at >= count:  # a gradient
            owner = f"t{found.owners[at - count]}"
            lines += _refusing([f"{owner}._extra is None or {owner}._extra.hooked"])
            lines.append(f"{name} = {owner}._extra.grad")
        lines += _one_tensor(at, tensor, found, scope, staying.get(at))
    if found.touches_grads:
        for at, tensor in enumerate(found.tensors[:count]):
            if tensor._edge is LEAF and at not in found.owners:
                lines += _refusing([f"(e := t{at}._extra) is not None and (e.grad is not None or e.hooked)"])
    first = {path for path in paths if path and not path.startswith("state")}
    for path, tensor in places:  # one tensor in two places
        if path not in first:
            lines += _refusing([f"{path} is not {names[id(tensor)]}"])
    given = [f"t{at}" for at, path in enumerate(paths) if path]
    lines += _all_different(given)
    captured = [id(found.tensors[at]) for at, path in enumerate(paths) if not path]
    if captured:
        scope["ids"] = frozenset(captured)  # they are kept alive, and differ from each other
        lines += _refusing([f"id({name}) in ids" for name in given])
    return lines + _memory_lines(found, staying, scope)


def _staying(paths: list[str]) -> dict[int, int]:
    """Number the tensors that are the same in most calls: those that are captured, and states of optimizers."""
    found = [at for at, path in enumerate(paths) if not path.startswith(("args", "kwargs"))]
    return {at: place for place, at in enumerate(found)}


def _all_different(names: list[str]) -> list[str]:
    """Write that several objects are different ones."""
    if len(names) > FEW:
        return _refusing([f"len({{{', '.join(f'id({name})' for name in names)}}}) != {len(names)}"])
    return _refusing([f"{one} is {other}" for one, other in combinations(names, 2)])


def _one_tensor(at: int, tensor: Any, found: Recorded, scope: dict[str, Any], place: int | None) -> list[str]:
    """Write what must hold of a tensor; one with a `place` among those that stay has the same array in most calls."""
    name, array = f"t{at}", tensor._array
    scope[f"type{at}"], scope[f"d{at}"] = type(tensor), array.dtype
    lines = _refusing([f"type({name}) is not type{at}"])
    lines.append(f"a{at} = {name}._array")
    lines.append(f"s{at} = {name}._storage")
    if not array.shape and at not in found.writes and at not in found.counted:  # which may be kept as a number
        scope[f"number{at}"] = array.dtype.type
        lines += [f"if type(a{at}) is number{at}:", f"    a{at} = asarray(a{at})"]
    different = [f"type(a{at}) is not ndarray or a{at}.dtype is not d{at} or a{at}.shape != {array.shape}"]
    if array.shape:
        different.append(f"a{at}.strides != {array.strides}")
    if at in found.writes:
        owner = f"(m{at} := a{at} if a{at}.base is None else a{at}.base)"  # of its memory, all of which it must show
        different.append(f"type({owner}) is not ndarray or m{at}.base is not None or m{at}.nbytes != {array.nbytes}")
    elif found.writes:
        different.append(f"(b := a{at}.base) is not None and (type(b) is not ndarray or b.base is not None)")
    if not found.inference:
        different.append(f"s{at} is not None and s{at}.inference")
    if place is not None:  # an array is what it was when it was looked at, and so is a storage
        lines.append(f"if a{at} is not known[{place}] or s{at} is not storages[{place}]:")
        lines += [f"    {line}" for line in _refusing([" or ".join(different)])]
        lines.append("    moved = True")
        different = []
    if tensor._edge is None:
        different.append(f"{name}._edge is not None")
    elif tensor._edge is LEAF and (found.touches_grads or place is not None):
        different.append(f"{name}._edge is not LEAF")
    else:
        different.append(f"{name}._edge is None")
    if at in found.writes:
        different.append(f"not a{at}.flags.writeable")
    return lines + _refusing([" or ".join(different)])


def _memory_lines(found: Recorded, staying: dict[int, int], scope: dict[str, Any]) -> list[str]:
    """Write that no array is that of two tensors, and that memory which is written is seen in one tensor only.

    Without writes and gradients it does not matter. Of tensors that stay it is found out when one of them has another array.
    """
    matters = bool(found.writes or found.touches_grads)
    lines: list[str] = []
    if staying:
        arrays = "".join(f"a{at}, " for at in staying)
        if matters:
            scope["lying_of"] = _lying
            scope["writes"] = frozenset([staying[at] for at in found.writes if at in staying])
            lines = [f"lying = lying_of(({arrays}), writes)", *_refusing(["lying is None"])]
        lines.append(f"storages = ({''.join(f's{at}, ' for at in staying)})")
        lines += [f"known = ({arrays})", "looked[0] = known, storages, lying"]
        lines = ["if moved:", *[f"    {line}" for line in lines]]
    given = [at for at in range(len(found.tensors)) if at not in staying]
    if not matters or not given:
        return lines
    own = [f"m{at}" if at in found.writes else f"a{at}" for at in given]
    lines += _all_different(own)
    refused: list[str] = []
    if staying:
        lines.append("own, written, shown = lying")
        refused += [f"id({one}) in own" for one in own]
        refused += [f"id(m{at}) in shown" for at in given if at in found.writes]
    if found.writes:
        seen = ["id(b) in written"] if staying else []
        seen += [f"b is m{at}" for at in given if at in found.writes]
        refused += [
            f"(b := a{at}.base) is not None and ({' or '.join(seen)})"
            for at in given
            if at not in found.writes and seen
        ]
    return lines + _refusing([" or ".join(refused)] if refused else [])


NOWHERE: tuple[frozenset[int], ...] = (frozenset(), frozenset(), frozenset())


def _lying(arrays: Sequence[Any], writes: frozenset[int]) -> Any:
    """Return where arrays lie of which some are written; None if one of these shares memory with another.

    That is the ids of the arrays, or of the owners of their memory for those that are written; these again; and the owners for others.
    """
    owners = [id(array if array.base is None else array.base) for array in arrays]
    written = frozenset([owners[at] for at in writes])
    shown = frozenset([owner for at, owner in enumerate(owners) if at not in writes])
    own = frozenset([owners[at] if at in writes else id(array) for at, array in enumerate(arrays)])
    return None if len(own) != len(arrays) or written & shown else (own, written, shown)


def _may_run_again(record: Record) -> bool:
    """Tell whether what a call changes must be kept: the function runs again if its backward is differentiated."""
    found = record.found
    return bool(found.seeds) and not found.freed and record.has_effects and not record.takes_steps


def _wrote(counts: dict[int, int]) -> str:
    return f"wrote({', '.join(f't{at}' for at, count in counts.items() for _ in range(count))})"


def _effect_lines(found: Recorded) -> list[str]:
    lines = [f"a{at}.fill(count_of_{at})" for at in found.counted]
    if found.writes:
        lines.append(_wrote(found.writes))
    for at, place in found.grads.items():
        lines.append(f"t{at}._need_extra().grad = {'None' if place is None else f'wrap(found[{place}])'}")
    return lines


def _kept_arguments(facts: list[tuple[str, str, Any]]) -> str:
    """Write what a node keeps of the arguments: those that hold lists and dictionaries may be changed by the time it runs."""
    changing = [path for path, kind, value in facts if kind == "dict" or (kind == "sequence" and value[0] is list)]
    every = [(root, any(path.startswith(f"{root}[") for path in changing)) for root in ("args", "kwargs")]
    return ", ".join(f"swapped({root}, nothing)" if changes else root for root, changes in every)


def _result_lines(
    record: Record,
    lines: list[str],
    scope: dict[str, Any],
    captured: Sequence[int],
    staying: dict[int, int],
    arguments: str,
) -> dict[int, str]:
    """Write the tensors of the result with their node, which keeps the `arguments`, and return their names."""
    found = record.found
    if found.seeds:
        every = range(len(found.tensors))
        written = every if record.takes_steps else found.writes
        lines += [f"s{at} = t{at}._storage" for at in written]  # which they may just have got
        tensors = _row("t", every, captured, "captured")
        storages = _row("s", every, () if written else [*staying], "storages")
        arrays = _row("a", every, [*staying], "known")
        versions = "".join(f"0 if s{at} is None else s{at}.version, " for at in every)
        lines += [
            f"node = Node().begin({_edges(found, staying, scope)})",
            f"node.num_outputs = {found.seeds}",
            f"node.labels = {tuple(found.labels)}",
            "node.done = node.arrived = none",
        ]
        if found.freed:
            lines += ["node.guard = Freed(None)", "node.call = node.saved = None"]
        else:
            start = len(found.forward.results) - len(found.saved)
            more = ", stream=streams" if _keeps_streams(found) else ""
            more += ", before=before" if _may_run_again(record) else ""
            if found.numbers:
                first = len(found.generators)
                more += f", numbers=({''.join(f'n{first + at}, ' for at in range(len(found.numbers)))})"
            call = f"Call(record, {arguments}, ({tensors}), ({arrays}), ({storages}), ({versions}){more})"
            lines += [f"node.call = {call}", f"node.saved = found[{start}:]"]
    texts: dict[int, str] = {}
    seed = 0
    for identity, out in found.outputs.items():
        name = f"r{len(texts)}"
        if out.kind == "given":
            name = f"t{out.index}"
        elif out.kind == "gradient":
            name = f"t{out.index}._extra.grad"
        elif out.kind == "view":
            scope[f"view_{name}"] = out.view.steps, out.view.made_in, out.follows
            lines.append(f"{name} = view_of({texts[out.source]}, *view_{name})")
        elif out.kind == "detached":
            lines.append(f"{name} = detached({texts[out.source]})")
        else:
            edge = "None"
            if out.requires_grad:
                edge = "node" if found.seeds == 1 else f"Slot(node, {seed})"
                seed += 1
            lines.append(f"{name} = wrap(found[{out.index}], {edge})")
            if out.inference:
                lines.append(f"mark_inference({name})")
            if out.version:
                lines.append(f"storage_of({name}).version = {out.version}")
        texts[identity] = name
    if found.seeds:
        lines.append(f"node.versions = {_versions(found, texts)}")
    return texts


def view_of(base: Any, steps: tuple[Any, ...], made_in: str, follows: bool) -> Any:
    """Make a view of a tensor again; `follows` says whether gradients go through it."""
    result = wrap(replay(materialise(base), steps))
    register_view(base, result, steps, NO_GRAD if made_in == WITHOUT_GRADIENTS else PLAIN, made_in == MULTIPLE)
    if follows:
        result._edge = replaying_node(result, base, steps)
    return result


def _row(letter: str, every: Sequence[int], part: Sequence[int], name: str) -> str:
    """Write the variables of a letter in a row, those of a part by the name of the tuple that has them already."""
    first, inside = next(iter(part), None), set(part)
    return "".join(
        f"*{name}, " if at == first else f"{letter}{at}, " for at in every if at == first or at not in inside
    )


def _edges(found: Recorded, staying: dict[int, int], scope: dict[str, Any]) -> str:
    """Write where gradients of tensors go: nowhere for one that gets none, though it was read.

    Those of leaves that stay do not change, which the guards have seen.
    """
    gradients = [0] * len(found.differentiated) if found.backward is None else found.gradients
    order = list(zip(found.differentiated, gradients, strict=True))
    leaves: list[Any] = []
    while order:
        at, gradient = order[-1]
        if gradient is not None and (at not in staying or found.tensors[at]._edge is not LEAF):
            break
        leaves.append(None if gradient is None else found.tensors[at])
        order.pop()
    scope["leaves"] = tuple(reversed(leaves))
    others = "".join(
        "None, " if gradient is None else f"t{at} if t{at}._edge is LEAF else t{at}._edge, " for at, gradient in order
    )
    return f"({others}*leaves, )" if others else "leaves"


def _versions(found: Recorded, texts: dict[int, str]) -> str:
    """Write the versions of results whose memory is saved."""
    entries = [
        f"(storage_of({texts[identity]}), {found.outputs[identity].version}, {texts[identity]}._array)"
        for identity, _ in found.shared_memory()[1]
    ]
    return f"({''.join(f'{entry}, ' for entry in entries)})"


def _chooser(found: Recorded) -> Callable[[Any], list[Any]]:
    """Return what finds the results that require gradients in another run of the function, in the order of the seeds."""
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
    for identity, out in found.outputs.items():  # a tensor of which only views are returned
        if out.kind == "view" and out.source not in paths and identity in paths:
            paths[out.source] = f"{paths[identity]}._base"
    order = [paths[identity] for identity, out in found.outputs.items() if out.requires_grad]
    text = f"def choose(r):\n    return [{', '.join(order)}]"
    return emit("results of a compiled function", text, {})["choose"]  # type: ignore[no-any-return]
