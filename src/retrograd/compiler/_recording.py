"""Recording a call: the function runs once on traced arrays, and everything is put back as it was.

Note [Recording a call]
The tensors that a call can reach are known: those among its arguments, and those that the purity analysis has found in globals,
closures and attributes. For the time of the recording their arrays are traced ones, and tensors that require gradients are
leaves, so that nothing outside the call takes part in it. The function runs under a mode of its own, in which nothing is plain.
What comes of it is
- the forward program, from the arrays of these tensors to the results;
- the backward program, from the gradients of the results to those of the tensors: `autograd.grad` runs on the graph that the
  function has left, and its steps are recorded like any others. What it reads of the forward is saved;
- effects: writes into known tensors are steps of the program; by how much versions advance and which tensors have another `.grad`
  is noted. Steps of optimizers that have plans are part of the program (Note [Steps inside] in `_optimizers.py`); others are called.
Then arrays, memory, versions, gradients and the random stream are put back. The recorded run leaves nothing behind, whether it
succeeds or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import autograd
from .._graph.walk import graph_of, node_of, path_between
from .._modes import current_mode, using
from ..tensor import _base
from ..tensor._aliasing.view_nodes import replay
from ..tensor._aliasing.views import GRAD, MULTIPLE, NO_GRAD, NOWHERE
from ..tensor._base import LEAF, Extra, edge_of, wrap
from ..tensor._functions.generators import default_generator
from ..tensor._recording.flat import EXACT
from ._apart import Snapshot
from ._numbers import Free, ScaleOf
from ._optimizers import Stepped
from ._program import Program, Step, Value, is_dynamic, may_refuse
from ._recorder import Recorder, Streams
from ._traced import Traced, UnrecordableError
from ._trees import Kept

FEW_ALONE = 4  # results whose backwards by themselves are compiled before anybody asks for them
MOST_ALONE = 4  # times as many nodes as that of all may these backwards have together
VIEWS = (GRAD, MULTIPLE, NO_GRAD)  # where views are made that a program can make again


@dataclass(slots=True)
class Output:
    """How one tensor of the result is come by.

    It is one of the inputs ("given"), the gradient of one ("gradient"), made by the program ("made"), or shows the memory of a tensor
    that is come by in one of these ways: as a view of it ("view"), or outside of the graph ("detached").
    """

    kind: str
    index: int = 0  # among the inputs, or among the results of the program
    requires_grad: bool = False  # it is made, and CompiledBackward is its node
    version: int = 0  # how often it was written when it is returned
    source: int = 0  # the id of the tensor whose memory it shows
    view: Any = None  # how it shows that
    follows: bool = False  # whether gradients go through the view
    inference: bool = False  # it was made in inference mode


class Recorded:
    """What a recording has found out. See Note [Recording a call]."""

    def __init__(self) -> None:
        self.forward: Program
        self.backward: Program | None = None
        self.result: Any = None  # the structure of results, of tensors of the recording
        self.outputs: dict[int, Output] = {}  # by the id of a tensor of the recording
        self.differentiated: list[int] = []  # inputs that get gradients, in the order of the edges
        self.gradients: list[int | None] = []  # for each, its place among the results of the backward
        self.seeds = 0  # results that require gradients
        self.reached: list[frozenset[int]] = []  # for each of these: which of the inputs that get gradients it comes of
        self.labels: list[str] = []  # of these: the names of their nodes in eager
        self.kept: frozenset[int] = frozenset()  # those whose graphs save nothing, so that no backward frees them
        self.partial: dict[
            frozenset[int], tuple[Program, list[int | None]]
        ] = {}  # backward of some of them, and its gradients
        self.likely: set[frozenset[int]] = (
            set()
        )  # of these: which are too many to be compiled before they are asked for
        self.behind: list[
            Any
        ] = []  # results of which others are computed: gradients of these by those may be asked for
        self.freed = False  # the function has gone through its own graph: there is no backward any more
        self.saved: list[Value] = []
        self.tensors: list[Any] = []  # the inputs: those that were given, behind them gradients that they had
        self.owners: list[int] = []  # whose gradients these are
        self.writes: dict[int, int] = {}  # by how many writes the version of an input advances
        self.before_call: dict[int, int] | None = (
            None  # the same up to the first optimizer that is called, which may raise
        )
        self.after: list[tuple[Any, Any, Any]] = []  # what is called after the program, with its arguments
        self.grads: dict[int, int | None] = {}  # inputs that have another `.grad`: its place among the results, or None
        self.optimizers: list[Stepped] = []  # whose steps can be part of the program
        self.counted: list[int] = []  # inputs that count their steps
        self.handed_out: list[Any] = []  # what the gradients were that optimizers were called with
        self.touches_grads = False
        self.draws = False  # random numbers are drawn from the default stream
        self.inference = current_mode().inference  # it was recorded in inference mode
        self.generators: list[Any] = []  # streams of the program's own, which are the first of the numbers that go in
        self.numbers: list[Free] = []  # of Python's, which are the next
        self.gives_back = False  # whether the program may find that it is not for a call after it has drawn
        self.shares_memory = False  # tensors from outside share memory
        self.steps: list[Step] = []

    @property
    def has_effects(self) -> bool:
        """Tell whether a call changes anything that was there."""
        return bool(self.writes or self.grads or self.after) or any(step.kind == "host" for step in self.forward.steps)

    def shared_memory(self) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """List the memory that is saved and may be written from outside: that of inputs by their places, of results by their ids."""
        saved = {value.buffer for value in self.saved}
        inputs = enumerate(self.forward.inputs[: len(self.tensors)])
        made = [(identity, out.index) for identity, out in self.outputs.items() if out.kind == "made"]
        results = [(identity, self.forward.results[at].buffer) for identity, at in made]
        return (
            [(at, value.buffer) for at, value in inputs if value.buffer in saved],
            [(identity, buffer) for identity, buffer in results if buffer in saved],
        )


class GradientsTouched(UnrecordableError):  # noqa: N818 - it asks for another recording
    """A function reads or writes `.grad`, which the recording has not prepared for."""


class HandedOut(BaseException):
    """A program on trial has come to a step of an optimizer."""

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        super().__init__()
        self.arrays = arrays


stop_at_optimizers: ContextVar[bool] = ContextVar("retrograd_stop_at_optimizers", default=False)


class _Unprepared(Extra):
    """What a tensor has besides its array where nobody should ask for its gradient."""

    grad = property(lambda self: self._touched(), lambda self, value: self._touched())
    hooks = property(lambda self: None, lambda self, value: self._refuse())

    def _touched(self) -> Any:
        raise GradientsTouched("the gradient of a tensor is read or written")

    def _refuse(self) -> Any:
        raise UnrecordableError("a hook is registered")


class _Inner(_Unprepared):
    """The same for a tensor inside a graph that began before the call."""

    def _touched(self) -> Any:
        raise UnrecordableError("backward goes through a tensor whose graph began before the call")


def reason_against(tensor: Any) -> str | None:
    """Say why a tensor cannot be an input of a program; None if it can."""
    if type(tensor) not in EXACT:
        return f"a tensor of class {type(tensor).__name__}"
    array = tensor._array
    if type(array) is not np.ndarray and not isinstance(array, np.generic):
        return f"a tensor over {type(array).__name__}"
    if array.dtype.kind not in "fiubcV" or (array.dtype.kind == "V" and array.dtype.num < 256):
        return f"a tensor of {array.dtype}"
    if tensor._storage is not None and tensor._storage.inference and not current_mode().inference:
        return "an inference tensor"
    return None


def record(
    function: Callable[[list[Any]], Any],
    tensors: list[Any],
    given: int,
    optimizers: Sequence[Stepped] = (),
    generators: Sequence[Any] = (),
    patterns: Iterable[frozenset[int]] = (),
    numbers: Sequence[Free] = (),
) -> Recorded:
    """Record a call of `function`, which reaches these tensors and no others; the first ones are its arguments.

    The last ones are the states of `optimizers`, whose steps can be part of the program. `generators` are streams of random numbers
    from which it may draw besides the default one. `patterns` say of which results alone gradients may come. `numbers` are those of
    Python's that are inputs: `function` is called with what stands for them.
    """
    try:
        return _Session(function, tensors, given, False, list(optimizers), generators, patterns, numbers).run()
    except GradientsTouched:
        again = [Stepped(one.optimizer) for one in optimizers]
        return _Session(function, tensors, given, True, again, generators, patterns, numbers).run()


class _Session:
    """One recording."""

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        tensors: list[Any],
        given: int,
        touches_grads: bool,
        optimizers: list[Stepped],
        generators: Sequence[Any],
        patterns: Iterable[frozenset[int]],
        numbers: Sequence[Free],
    ) -> None:
        self.function, self.given, self.patterns = function, given, set(patterns)
        self.found = Recorded()
        self.found.optimizers = optimizers
        self.found.touches_grads = touches_grads
        self.tensors = list(tensors)
        if touches_grads:
            self._add_gradients()
        for tensor in self.tensors:
            if (reason := reason_against(tensor)) is not None:
                raise UnrecordableError(reason)
        self.recorder = Recorder(self)
        self.found.generators = [*generators]
        for generator in generators:
            self.recorder.add_generator(generator)
        self.found.numbers = list(numbers)
        self.numbers = [self.recorder.free_number(one.thing, one.key) for one in numbers]
        self.before: list[Snapshot] = []
        self.kept: list[Any] = []  # results that the program makes
        self.changed: list[Any] = []  # what is changed after the program
        self.scalers = [one.holder for one in numbers if type(one) is ScaleOf]
        self.first: dict[int, Any] = {}  # the gradients before the call, and those that the program has handed out
        self.graded = [at for at, one in enumerate(self.tensors[: len(tensors)]) if one._edge is LEAF]

    def _add_gradients(self) -> None:
        for at, tensor in enumerate(list(self.tensors)):
            extra = tensor._extra
            if tensor._edge is not LEAF or extra is None:
                continue
            if extra.hooked or extra.hooks or extra.grad_dtype is not LEAF:
                raise UnrecordableError("a tensor with hooks, whose gradient the function computes")
            if extra.grad is not None:
                if extra.grad._edge is not None or any(extra.grad is one for one in self.tensors):
                    raise UnrecordableError("a gradient that has a graph, or is an argument too")
                self.tensors.append(extra.grad)
                self.found.owners.append(at)

    def run(self) -> Recorded:
        recorder, found = self.recorder, self.found
        streams = Streams([default_generator, *found.generators])
        for tensor in self.tensors[self.given :]:
            if isinstance(tensor._array, np.generic):
                _base.materialise(tensor)
        self.before = [Snapshot(tensor) for tensor in self.tensors]
        try:
            for one in self.before:
                self._trace(one)
            for at, owner in enumerate(found.owners, len(self.tensors) - len(found.owners)):
                self.tensors[owner]._extra.grad = self.tensors[at]
            for at in self.graded:
                self.first[at] = self.tensors[at]._extra.__dict__.get("grad")
            with using(recording=recorder, transforms=()):
                found.result = self.function(self.numbers)
                self._finish()
            return found
        finally:
            recorder.rolled_back()
            for scaler in self.scalers:
                scaler._progress = {}
            for one in self.before:
                one.restore()
            moved = streams.have_moved()
            streams.put_back()
            if moved[0] and not recorder.draws:
                raise UnrecordableError("random numbers are drawn in a way that is not recorded")

    def _trace(self, one: Snapshot) -> None:
        array = self.recorder.input(np.asarray(one.array) if isinstance(one.array, np.generic) else one.array)
        extra = _Inner() if one.edge is not LEAF else Extra() if self.found.touches_grads else _Unprepared()
        one.show(array, None if one.edge is None else LEAF, extra)

    # ---- what is called after the program ----
    def call_after(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changed: Any
    ) -> None:
        """Let a method of a schedule or a scaler be called after the program: it counts, and sets what no step of the program reads."""
        self.found.after.append((function, (Kept(args[0]), *args[1:]), kwargs))
        self.changed += changed

    def need_current(self, thing: Any) -> None:
        """Refuse to use what is changed after the program only."""
        if any(one is thing for one in self.changed):
            raise UnrecordableError(f"a {type(thing).__name__} is used after it was changed in the same call")

    def number_of(self, scaler: Any) -> Any:
        """Return what stands for the scale of a GradScaler."""
        self.need_current(scaler)
        for one, number in zip(self.found.numbers, self.numbers, strict=True):
            if one.holder is scaler and type(one) is ScaleOf:
                return number
        raise UnrecordableError("a GradScaler is used that the analysis of the function has not found")

    # ---- what optimizers do: see Note [Steps inside] in `_optimizers.py`; the others are called, not recorded ----
    def call_later(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let the program call a step of an optimizer at this point, with the gradients that there are by now."""
        if len(args) != 1 or kwargs:
            raise UnrecordableError("an optimizer's step with a closure")
        self.need_current(args[0])
        if not self.found.touches_grads:
            raise GradientsTouched("an optimizer's step reads gradients")
        for one in self.found.optimizers:
            if one.optimizer is args[0]:
                one.record(self.recorder)
                return
        if self.found.before_call is None:
            stored = [(at, one._storage) for at, one in enumerate(self.tensors)]
            self.found.before_call = {at: one.version for at, one in stored if one is not None and one.version}
        commits: list[tuple[Any, bool]] = []
        values = []
        for at in self.graded:
            tensor = self.tensors[at]
            grad = tensor._extra.grad
            if grad is self.first[at]:
                continue
            if at < self.given:
                raise UnrecordableError("a step of an optimizer on the gradients of an argument")
            if grad is not None:
                values.append(self._handed_out(grad))
            commits.append((tensor, grad is not None))
            self.first[at] = grad
        self.found.handed_out += [one.array.copy() for one in values]
        self.recorder.host(_committing(commits, function, args[0]), "optimizer_step", values)

    def _handed_out(self, grad: Any) -> Any:
        """Return the array of a new gradient, in memory that nobody else has."""
        if grad._edge is not None:
            raise UnrecordableError("a gradient that has a graph")
        array = grad._array
        if not self.recorder.is_traced(array):
            raise UnrecordableError("a gradient that is not recorded")
        if array.value.buffer.known or array.value.constant is not None:
            array = grad._array = array.copy("K")
        return array

    def need_known(self, tensors: Any) -> None:
        """Refuse tensors that the analysis has not found."""
        known = {id(tensor) for tensor in self.tensors}
        if any(id(tensor) not in known for tensor in tensors):
            raise UnrecordableError("a tensor is used that the analysis of the function has not found")

    # ---- the end ----
    def _finish(self) -> None:
        found, recorder = self.found, self.recorder
        tensors = self.tensors
        found.tensors, found.shares_memory, found.draws = tensors, recorder.shared, recorder.draws
        places = {id(tensor): at for at, tensor in enumerate(tensors)}
        for at, tensor in enumerate(tensors):
            self._note_writes(at, tensor, recorder.inputs[at])
        for one in found.optimizers:
            counters = [
                one.optimizer.state[param]["step"]
                for kin in one.kins.values()
                if kin.step is not None
                for param in kin.updated.values()
            ]
            found.counted += [places[id(counter)] for counter in counters]
        values: list[Value] = []
        memories: list[Any] = []
        differentiable: list[Any] = []
        for scaler in self.scalers:
            if scaler._progress:
                state = {key: (one.stage, one.found_inf) for key, one in scaler._progress.items()}
                found.after.append((type(scaler)._go_on, (Kept(scaler), Kept(state)), {}))
        for out in tensors_in([found.result, found.after]):
            self._note_output(out, places, values, memories, differentiable)
        for at in self.graded if found.touches_grads else ():
            grad = tensors[at]._extra.grad
            if grad is self.first[at]:
                continue
            if grad is None:
                found.grads[at] = None
                continue
            value = self._handed_out(grad).value
            if value.buffer in memories:
                raise UnrecordableError("a gradient shares memory with a result")
            memories.append(value.buffer)
            found.grads[at] = len(values)
            values.append(value)
        if found.inference and (
            found.writes or any(out.kind not in ("given", "made") for out in found.outputs.values())
        ):
            raise UnrecordableError("inference mode, in which tensors from outside are written or views are returned")
        if found.writes and (found.shares_memory or any(map(_is_part, self.before))):
            raise UnrecordableError("tensors that may share memory are written in place")
        self._programs(differentiable, values)
        steps = found.forward.steps
        drawn = [at for at, step in enumerate(steps) if step.kind == "draw"]
        later = steps[drawn[0] :] if drawn else []
        found.gives_back = any(step.kind == "check" or is_dynamic(step) or may_refuse(step) for step in later)

    def _note_output(
        self, out: Any, places: dict[int, int], values: list[Value], memories: list[Any], differentiable: list[Any]
    ) -> None:
        """Note how a result is come by, and the tensors whose memory it shows before it."""
        known = self.found.outputs
        if id(out) in known:
            return
        if id(out) in places:
            known[id(out)] = Output("given", places[id(out)])
            return
        if self.found.touches_grads:
            for at in self.graded:
                if self.tensors[at]._extra.grad is out:
                    known[id(out)] = Output("gradient", at)
                    return
        array, edge, extra = out._array, out._edge, out._extra
        if type(array) is not Traced:
            raise UnrecordableError(f"a result is made of {type(array).__name__}")
        if edge is LEAF:
            raise UnrecordableError("a leaf that requires gradients is made and returned")
        if extra is not None and extra.grad is not None:
            raise UnrecordableError("a tensor is made and returned that has a gradient")
        buffer = array.value.buffer
        if extra is not None and extra.view is not None:
            base, follows = extra.view.base, edge is not None and edge is not NOWHERE
            if extra.view.made_in not in VIEWS or (follows and (base._edge is None or extra.view.made_in == NO_GRAD)):
                raise UnrecordableError("a view is returned that was made in inference mode or by a Function")
            self._note_output(base, places, values, memories, differentiable)
            if type(base._array) is not Traced or base._array.value.buffer is not buffer:
                raise UnrecordableError("a view is returned that shows another memory than its base")
            if not _can_be_made_again(extra.view.steps, base._array.array, array.array):
                raise UnrecordableError("a view is returned that was made inside a transform")
            known[id(out)] = Output("view", source=id(base), view=extra.view, follows=follows)
            return
        for other in (*self.tensors, *self.kept):
            if out._storage is not None and out._storage is other._storage and other._array.value is array.value:
                if edge is not None:
                    break
                if id(other) in places:
                    known.setdefault(id(other), Output("given", places[id(other)]))
                known[id(out)] = Output("detached", source=id(other))
                return
        if buffer.known or buffer in memories:
            raise UnrecordableError("a result shows the memory of an argument or of another result")
        memories.append(buffer)
        self.kept.append(out)
        if edge is not None:
            differentiable.append(out)
        storage = out._storage
        version, inference = (0, False) if storage is None else (storage.version, bool(storage.inference))
        known[id(out)] = Output("made", len(values), edge is not None, version, inference=inference)
        values.append(array.value)

    def _note_writes(self, at: int, tensor: Any, value: Value) -> None:
        """Note by how much a version advances, and refuse what else happens to a tensor from outside."""
        array, was = tensor._array, self.before[at]
        if type(array) is not Traced or array.value is not value:
            raise UnrecordableError("a tensor from outside gets another memory")
        if (was.edge is None) is not (tensor._edge is None) or (tensor._edge is not None and tensor._edge is not LEAF):
            raise UnrecordableError("a tensor from outside gets another history")
        storage = tensor._storage
        count = 0 if storage is None else storage.version
        if count or self.recorder.has_written(array):  # running statistics are written without a version
            if was.extra is not None and was.extra.view is not None:
                raise UnrecordableError("a view from outside is written in place")
            if isinstance(was.array, np.generic) or not shows_all(was.array):
                raise UnrecordableError("memory from outside that is part of other memory is written in place")
            self.found.writes[at] = count

    def _programs(self, differentiable: list[Any], values: list[Value]) -> None:
        found, recorder = self.found, self.recorder
        count = len(recorder.steps)
        inputs = [*recorder.inputs[: len(self.tensors)], *recorder.numbers]
        if differentiable:
            found.differentiated = [at for at in range(len(self.tensors)) if self.before[at].edge is not None]
            found.seeds = len(differentiable)
            found.labels = [type(out.grad_fn).__name__ for out in differentiable]
            graphs = [graph_of([out._edge])[0] for out in differentiable]
            found.kept = frozenset(at for at, nodes in enumerate(graphs) if not any(node.saves for node in nodes))
            try:
                self._differentiate(differentiable, values, count)
                found.behind = _behind_others(differentiable)
                return
            except RuntimeError as error:
                if "second time" not in str(error) or not self._is_freed(differentiable):
                    raise
                found.freed = True
                found.gradients, found.saved, found.backward = [], [], None
        del recorder.steps[count:]  # of a backward that came to what is freed
        found.forward = _ordered(Program(inputs, recorder.steps, values).simplified())
        found.steps = recorder.steps

    def _seed(self, out: Any) -> Any:
        """Return a gradient of a result, for the backward."""
        array = out._array.array
        return wrap(self.recorder.input(np.ones(array.shape, array.dtype)))

    def _is_freed(self, outs: list[Any]) -> bool:
        """Tell whether every way from a result to an input leads over a node that is freed; the nodes before it may save nothing."""
        for out in outs:
            for at in self.found.differentiated:
                try:
                    grads = autograd.grad(out, self.tensors[at], self._seed(out), retain_graph=True, allow_unused=True)
                except RuntimeError as error:
                    if "second time" not in str(error):
                        raise
                else:
                    if grads[0] is not None:
                        return False
        return True

    def _differentiate(self, outs: list[Any], values: list[Value], count: int) -> None:
        """Record the backward, of all results and of some alone, and say what the forward saves for it."""
        found, recorder, tensors = self.found, self.recorder, self.tensors
        inputs = [*recorder.inputs[: len(tensors)], *recorder.numbers]
        every = frozenset(range(len(outs)))
        graphs = [graph_of([out._edge]) for out in outs]
        ends = [node_of(edge_of(tensors[at])) for at in found.differentiated]
        found.reached = [
            frozenset([at for at, end in enumerate(ends) if end in nodes or end in leaves]) for nodes, leaves in graphs
        ]
        recorded = [
            self._backward_of(pattern, outs) for pattern in (every, *self._patterns([nodes for nodes, _ in graphs]))
        ]
        saved: dict[Value, None] = {}
        for program, _, _, seeds in recorded:
            made = {value for step in program.steps for value in step.makes}
            read = [value for step in program.steps for value in step.values if value not in made]
            read += [value for value in program.results if value not in made]
            saved |= dict.fromkeys(value for value in read if not _is_constant(value) and value not in seeds)
        found.saved = list(saved)
        kept = {value.buffer for value in found.saved}
        for program, gradients, pattern, seeds in recorded:
            if any(buffer in kept for step in program.steps for buffer in step.writes):
                raise UnrecordableError("backward writes into what the forward has saved")
            program = Program([*found.saved, *seeds], program.steps, program.results)
            if pattern == every:
                found.backward, found.gradients = program, gradients
            else:
                found.partial[pattern] = program, gradients
        found.likely = set(found.partial) - self.patterns if len(outs) > FEW_ALONE else set()
        found.forward = _ordered(Program(inputs, recorder.steps[:count], [*values, *found.saved]).simplified())
        found.steps = recorder.steps

    def _patterns(self, graphs: list[set[Any]]) -> list[frozenset[int]]:
        """Return which results, by the nodes behind them, may get gradients alone.

        Those that were asked for; and each by itself where it may be too late to run the function again when it is asked for: if the
        function writes, or if the result comes of a part of the inputs, as others may have changed by then. (The discriminator of a GAN
        takes a step between its own backward and that of the generator.)
        """
        count, reached = len(graphs), self.found.reached
        found = {pattern for pattern in self.patterns if len(pattern) < count}
        if count > 1 and sum(map(len, graphs)) <= MOST_ALONE * len(set().union(*graphs)):
            together = frozenset().union(*reached)
            found |= {frozenset({at}) for at, some in enumerate(reached) if self.found.writes or some != together}
        return sorted(found, key=sorted)

    def _backward_of(
        self, pattern: frozenset[int], outs: list[Any]
    ) -> tuple[Program, list[int | None], frozenset[int], list[Value]]:
        """Record the backward of some results: the program, the place of each gradient, the pattern, and the gradients that come in."""
        found, recorder = self.found, self.recorder
        count, before = len(recorder.steps), len(recorder.inputs)
        chosen = [outs[at] for at in sorted(pattern)]
        seeds = list(map(self._seed, chosen))
        wanted = [self.tensors[at] for at in found.differentiated]
        gradients = autograd.grad(chosen, wanted, seeds, retain_graph=True, allow_unused=True)  # for `_is_freed`
        results: list[Value] = []
        places: list[int | None] = []
        memories = {value.buffer for value in recorder.inputs}
        memories |= {value.buffer for step in recorder.steps[:count] for value in step.makes}
        for gradient, tensor in zip(gradients, wanted, strict=True):
            if gradient is None:
                places.append(None)
                continue
            array = gradient._array
            if array.shape != tensor._array.shape or array.dtype != tensor._array.dtype:
                raise UnrecordableError("a gradient of another shape or dtype")
            if array.value.buffer in memories or array.value.constant is not None:  # whom it goes to may write into it
                array = array.copy("K")
            memories.add(array.value.buffer)
            places.append(len(results))
            results.append(array.value)
        steps = recorder.steps[count:]
        if any(buffer.known for step in steps for buffer in step.writes):
            raise UnrecordableError("backward writes into a tensor from outside")
        return Program([], steps, results).simplified(), places, pattern, recorder.inputs[before:]


def _behind_others(outs: list[Any]) -> list[Any]:
    """Return the results through which the graphs of other results lead."""
    return [
        out
        for out in outs
        if any(other is not out and path_between(other._edge, out._edge) is not None for other in outs)
    ]


def _can_be_made_again(steps: Any, base: Any, view: Any) -> bool:
    """Tell whether the steps of a view lead from its base to it on plain arrays: those inside transforms do not."""
    try:
        made = replay(base, steps)
    except Exception:
        return False
    return made.shape == view.shape and made.strides == view.strides and np.may_share_memory(made, view)


def shows_all(array: Any) -> bool:
    """Tell whether an array owns its memory, or shows all that another owns: such a one may be written."""
    base = array.base
    return base is None or (type(base) is np.ndarray and base.base is None and base.nbytes == array.nbytes)


def _is_part(was: Snapshot) -> bool:
    """Tell whether an array may show memory of another one in a way that is not seen by its base alone."""
    base = was.array.base
    return base is not None and (type(base) is not np.ndarray or base.base is not None)


def _committing(commits: list[tuple[Any, bool]], function: Callable[..., Any], optimizer: Any) -> Callable[..., None]:
    """Return what hands gradients to their tensors and calls a step of an optimizer."""

    def optimizer_step(*arrays: Any) -> None:
        if stop_at_optimizers.get():
            raise HandedOut(arrays)
        left = iter(arrays)
        for tensor, has in commits:
            tensor._need_extra().grad = wrap(next(left)) if has else None
        function(optimizer)

    return optimizer_step


def _ordered(program: Program) -> Program:
    """Put checks, and what they need, before everything that changes what was there; numbers that were drawn can be given back."""
    steps = program.steps
    changing = [at for at, step in enumerate(steps) if _changes(step)]
    if not changing:
        return program
    start = changing[0]
    if any(is_dynamic(step) or may_refuse(step) for step in steps[start:]):
        raise UnrecordableError(
            "a shape or an error that depends on numbers follows a write into a tensor from outside"
        )
    pending = [at for at in range(start, len(steps)) if steps[at].kind == "check"]
    if not pending:
        return program
    uses: dict[Any, list[int]] = {}  # which steps read or write memory
    for at in range(start, len(steps)):
        for buffer in {*(value.buffer for value in steps[at].values), *steps[at].writes} - {None}:
            uses.setdefault(buffer, []).append(at)
    places = {value: at for at, step in enumerate(steps) for value in step.makes}
    early: set[int] = set()
    while pending:
        at = pending.pop()
        if at in early or at < start:
            continue
        step = steps[at]
        if _changes(step):
            raise UnrecordableError("a branch on a value follows a write into a tensor from outside")
        early.add(at)
        pending += [places[value] for value in step.values if value in places]
        for buffer in {*(value.buffer for value in step.values), *step.writes} - {None}:
            for other in uses[buffer]:  # writes that it sees, and what must come before its own
                if other < at and (buffer in step.writes or buffer in steps[other].writes):
                    pending.append(other)
    first = [step for at, step in enumerate(steps) if at < start or at in early]
    rest = [step for at, step in enumerate(steps) if at >= start and at not in early]
    return Program(program.inputs, [*first, *rest], program.results)


def _changes(step: Step) -> bool:
    """Tell whether a step changes what was there before the call, in a way that cannot be taken back."""
    return step.kind != "draw" and any(buffer.known for buffer in step.writes)


def tensors_in(tree: Any) -> Any:
    """Go through the tensors of a result."""
    kind = type(tree)
    if kind in EXACT:
        yield tree
    elif isinstance(tree, (tuple, list)):
        for one in tree:
            yield from tensors_in(one)
    elif kind is dict:
        for one in tree.values():
            yield from tensors_in(one)
    elif isinstance(tree, _base.Tensor):
        raise UnrecordableError(f"a result of class {kind.__name__}")


def _is_constant(value: Value) -> bool:
    """Tell whether a value is the same in every call."""
    return value.constant is not None and (value.buffer is None or not value.buffer.written)
