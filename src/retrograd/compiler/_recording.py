"""Recording a call: the function runs once on traced arrays, and everything is put back as it was.

Note [Recording a call]
The tensors that a call can reach are known: those among its arguments, and those that the purity analysis has found in globals, closures and attributes. For the
time of the recording their arrays are traced ones, and tensors that require gradients are leaves, so that nothing outside the call takes part in it. The function
runs under a mode of its own, in which nothing is plain. What comes of it is
- the forward program, from the arrays of these tensors to the results;
- the backward program, from the gradients of the results to those of the tensors: `autograd.grad` runs on the graph that the function has left, and its steps are
  recorded like any others. What it reads of the forward is saved.
Then arrays, memory, versions, gradients and the random stream are put back. The recorded run leaves nothing behind, whether it succeeds or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import autograd
from .._modes import using
from ..tensor import _base
from ..tensor._base import LEAF, wrap
from ..tensor._functions.generators import default_generator
from ..tensor._recording.flat import EXACT
from ._program import Program, Step, Value
from ._recorder import Recorder
from ._traced import Traced, UnrecordableError
from ._trees import UnknownError


class Output:
    """How one tensor of the result is come by."""

    __slots__ = ("given", "index", "requires_grad")

    def __init__(self, index: int, given: bool, requires_grad: bool) -> None:
        self.index = index  # among the results of the program, or among the inputs
        self.given = given  # it is one of the inputs itself
        self.requires_grad = requires_grad


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
        self.saved: list[Value] = []
        self.versions: dict[int, int] = {}  # by how many writes the version of an input advances
        self.steps: list[Step] = []


class _Snapshot:
    """What is put back of a tensor after a recording."""

    __slots__ = ("array", "edge", "extra", "grad", "owner", "storage", "tensor", "version")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.array, self.edge, self.extra, self.storage = tensor._array, tensor._edge, tensor._extra, tensor._storage
        self.grad = None if self.extra is None else self.extra.grad
        self.version = 0 if self.storage is None else self.storage.version

    def restore(self) -> None:
        tensor = self.tensor
        tensor._array, tensor._edge, tensor._extra, tensor._storage = self.array, self.edge, self.extra, self.storage
        if self.extra is not None and (self.grad is not None or self.extra.grad is not None):
            self.extra.grad = self.grad
        if self.storage is not None:
            self.storage.version = self.version


def reason_against(tensor: Any) -> str | None:
    """Say why a tensor cannot be an input of a program; None if it can."""
    if type(tensor) not in EXACT:
        return f"a tensor of class {type(tensor).__name__}"
    array = tensor._array
    if type(array) is not np.ndarray and not isinstance(array, np.generic):
        return f"a tensor over {type(array).__name__}"
    if array.dtype.kind not in "fiubcV" or (array.dtype.kind == "V" and array.dtype.num < 256):
        return f"a tensor of {array.dtype}"
    if tensor._storage is not None and tensor._storage.inference:
        return "an inference tensor"
    return None


def record(function: Callable[[], Any], tensors: list[Any], tracks: bool) -> Recorded:
    """Record a call of `function`, which reaches these tensors and no others."""
    for tensor in tensors:
        if (reason := reason_against(tensor)) is not None:
            raise UnrecordableError(reason)
    recorder = Recorder()
    before = [_Snapshot(tensor) for tensor in tensors]
    drawn = default_generator.get_state()
    try:
        for tensor in tensors:
            array = tensor._array
            tensor._array = recorder.input(np.asarray(array) if isinstance(array, np.generic) else array)
            if tensor._edge is not None:
                tensor._edge = LEAF
            tensor._storage = None
            tensor._extra = None
        with using(recording=recorder):
            result = function()
            return _found(recorder, result, tensors, before, tracks)
    finally:
        recorder.rolled_back()
        for one in before:
            one.restore()
        if not np.array_equal(drawn._array, default_generator.get_state()._array):
            default_generator.set_state(drawn)
            raise UnrecordableError("random numbers are drawn")


def _found(recorder: Recorder, result: Any, tensors: list[Any], before: list[_Snapshot], tracks: bool) -> Recorded:
    found = Recorded()
    found.result = result
    places = {id(tensor): at for at, tensor in enumerate(tensors)}
    for at, (tensor, was) in enumerate(zip(tensors, before, strict=True)):
        _need_unchanged(tensor, was, recorder.inputs[at])
    outs = list(_tensors_in(result))
    values: list[Value] = []
    memories: list[Any] = []
    differentiable: list[Any] = []
    for out in outs:
        if id(out) in places:
            found.outputs[id(out)] = Output(places[id(out)], True, False)
            continue
        if id(out) in found.outputs:
            continue
        array = out._array
        if type(array) is not Traced:
            raise UnrecordableError(f"a result is made of {type(array).__name__}")
        edge = out._edge
        if edge is LEAF:
            raise UnrecordableError("a leaf that requires gradients is made and returned")
        buffer = array.value.buffer
        if buffer.known or buffer in memories:
            raise UnrecordableError("a result shows the memory of an argument or of another result")
        memories.append(buffer)
        requires = edge is not None
        if requires:
            differentiable.append(out)
        found.outputs[id(out)] = Output(len(values), False, requires)
        values.append(array.value)
    count = len(recorder.steps)
    inputs = recorder.inputs[: len(tensors)]
    if differentiable:
        _differentiate(found, recorder, differentiable, tensors, values, count)
    else:
        found.forward = Program(inputs, recorder.steps[:count], values).simplified()
    found.steps = recorder.steps
    return found


def _need_unchanged(tensor: Any, was: _Snapshot, value: Value) -> None:
    """Refuse a call that changes a tensor from outside."""
    array = tensor._array
    if type(array) is not Traced or array.value is not value:
        raise UnrecordableError("a tensor from outside gets another memory")
    if value.buffer is not None and value.buffer.written:
        raise UnrecordableError("a tensor from outside is written in place")
    if (was.edge is None) is not (tensor._edge is None) or (tensor._edge is not None and tensor._edge is not LEAF):
        raise UnrecordableError("a tensor from outside gets another history")
    if tensor._extra is not None and (tensor._extra.grad is not None or tensor._extra.hooks):
        raise UnrecordableError("a gradient is left in a tensor from outside (backward), or a hook is registered")


def _tensors_in(tree: Any) -> Any:
    kind = type(tree)
    if kind in EXACT:
        yield tree
    elif isinstance(tree, (tuple, list)):
        for one in tree:
            yield from _tensors_in(one)
    elif kind is dict:
        for one in tree.values():
            yield from _tensors_in(one)
    elif isinstance(tree, _base.Tensor):
        raise UnrecordableError(f"a result of class {kind.__name__}")


def _differentiate(
    found: Recorded, recorder: Recorder, outs: list[Any], tensors: list[Any], values: list[Value], count: int
) -> None:
    """Record the backward, and say what the forward saves for it."""
    inputs = recorder.inputs[: len(tensors)]
    found.differentiated = [at for at, tensor in enumerate(tensors) if tensor._edge is not None]
    found.seeds = len(outs)
    seeds = []
    for out in outs:
        array = out._array.array
        seeds.append(wrap(recorder.input(np.ones(array.shape, array.dtype))))
    wanted = [tensors[at] for at in found.differentiated]
    gradients = autograd.grad(outs, wanted, seeds, allow_unused=True)
    results: list[Value] = []
    memories = {value.buffer for value in recorder.inputs}
    for gradient, tensor in zip(gradients, wanted, strict=True):
        if gradient is None:
            found.gradients.append(None)
            continue
        array = gradient._array
        if array.shape != tensor._array.shape or array.dtype != tensor._array.dtype:
            raise UnrecordableError("a gradient of another shape or dtype")
        if array.value.buffer in memories or array.value.constant is not None:  # whom it goes to may write into it
            array = array.copy("K")
        memories.add(array.value.buffer)
        found.gradients.append(len(results))
        results.append(array.value)
    steps = recorder.steps[count:]
    if any(buffer.known for step in steps for buffer in step.writes):
        raise UnrecordableError("backward writes into a tensor from outside")
    program = Program([], steps, results).simplified()
    made = {value for step in program.steps for value in step.makes}
    read = dict.fromkeys(value for step in program.steps for value in step.values if value not in made)
    read |= dict.fromkeys(value for value in results if value not in made)
    seed_values = recorder.inputs[len(tensors) :]
    found.saved = [value for value in read if not _is_constant(value) and value not in seed_values]
    memories = {value.buffer for value in found.saved}
    if any(buffer in memories for step in program.steps for buffer in step.writes):
        raise UnrecordableError("backward writes into what the forward has saved")
    found.backward = Program([*found.saved, *seed_values], program.steps, results)
    found.forward = Program(inputs, recorder.steps[:count], [*values, *found.saved]).simplified()


def _is_constant(value: Value) -> bool:
    """Tell whether a value is the same in every call."""
    return value.constant is not None and (value.buffer is None or not value.buffer.written)


__all__ = ["Output", "Recorded", "UnknownError", "record"]
