"""The node of a compiled call: one node for all that the function does, with a compiled backward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from types import CellType, FunctionType
from typing import Any

import numpy as np

from .. import _errors, autograd
from .._core.arrays import LevelArray
from .._core.primitive import vocabulary
from .._graph.guards import Freed
from .._graph.node import Node
from .._modes import current_mode, using
from ..tensor import _base
from ..tensor._aliasing.views import NOWHERE
from ..tensor._base import LEAF, Extra, edge_of, wrap
from ..tensor._object.old_attributes import slot_of
from ._apart import Snapshot, one_at_a_time
from ._trees import swapped

NDARRAY = np.ndarray


class CompiledBackward(Node):
    """The backward of a compiled call.

    Gradients that are arrays go through the compiled backward. There is one for all results, and one for each choice of results that has
    come before, or is likely to come. If there is one for each result of another choice, their gradients are added. Else, as where
    gradients carry levels, the function runs again in eager on the saved inputs, and its own graph is differentiated; if something has
    changed since the call, the backward of all results gets zeros for the others. Where a graph of the backward is wanted, that is
    compiled, too (`_derivatives.py`).
    """

    __slots__ = ("arrived", "call", "done", "labels", "num_outputs", "saved", "versions")

    saves = makes_gradients = holds_several = True
    call: Any  # the compiled call: its record, and the tensors that it was given
    saved: Any
    labels: tuple[str, ...]  # of each result: the name of its node in eager, which is printed
    arrived: frozenset[int]  # results whose gradients came last
    done: frozenset[int]  # those that need no graph any more: eager frees the graph of each by itself
    versions: Any  # of results whose memory is saved: (storage, version, array)

    def pull_back(self, g: Any, graph: bool) -> Any:
        if type(self.guard) is Freed:
            raise _errors.freed(self.guard.place)
        call = self.call
        record = call.record
        parts = g if type(g) is tuple else (g,)
        self.arrived = frozenset([at for at, part in enumerate(parts) if part is not None])
        if self.arrived & self.done:
            raise _errors.freed(None)
        backward = None
        if not graph and all([part is None or type(part) is NDARRAY or isinstance(part, np.generic) for part in parts]):
            backward = record.backward_of(self.arrived)
            if backward is None and self.arrived and (record.takes_steps or call.change() is not None):
                backward = record.with_zeros(self.arrived)
        inputs, results = record.saved if backward is None else backward[2]
        if backward is None:  # the function runs again: results without gradients may have been overwritten
            results = [at for at in results if record.seeds[at] in self.arrived]
        for at in inputs:
            tensor, version = call.tensors[at], call.versions[at]
            # one that had no storage may have got one since: see Note [Saved values]
            storage = call.storages[at] or tensor._storage
            if storage is not None and storage.version != version:
                raise _errors.overwritten(tensor._array, tensor._edge, storage, version, self.place())
        for storage, version, array in [self.versions[at] for at in results]:
            if storage.version != version:
                raise _errors.overwritten(array, self, storage, version, self.place())
        if backward is None:
            return self._again(parts, graph)
        program, gradients, _ = backward
        found = program(*self.saved, *[_laid_out(part) for part in parts if part is not None])
        if found is None:  # a value is not what it was when the program was recorded
            return self._again(parts, graph)
        return [None if at is None else found[at] for at in gradients]

    def _again(self, parts: Sequence[Any], graph: bool) -> Any:
        """Differentiate the function anew, on what it was given."""
        from ._derivatives import gradients_of

        create_graph = current_mode().grad
        call = self.call
        if call.record.takes_steps:
            raise NotImplementedError(
                "the backward of a compiled function that takes a step of an optimizer cannot be differentiated itself, nor be run for "
                "some of its results only\nHint: leave torch.compile out here, or compile what takes no step."
            )
        if (change := call.change()) is not None:
            raise RuntimeError(change)
        if not self.arrived:
            return [None] * len(call.record.differentiated)

        def in_eager() -> Any:
            with call.apart(graph):
                with using(grad=True, recording=None), call.as_before(), call.inside_again():
                    outs, wanted = call.again(graph)
                arrived = [
                    (out, part if isinstance(part, _base.Tensor) else wrap(part))
                    for out, part in zip(outs, parts, strict=True)
                    if part is not None
                ]
                made, seeds = zip(*arrived, strict=True)
                found = autograd.grad(made, wanted, seeds, create_graph=create_graph, allow_unused=True)
            if create_graph:
                self._hand_hooks_on(outs)
            return found

        if graph:
            hooked = self.extra is not None and (self.extra.tensor_hooks or self.extra.retained)
            return gradients_of(call, parts, True, in_eager) if create_graph and not hooked else in_eager()
        if any(isinstance(part, LevelArray) for part in parts):
            given = [None if part is None else wrap(part) for part in parts]
            grads = gradients_of(call, given, False, in_eager)
        else:
            grads = in_eager()
        return [None if grad is None else _new(grad._array) for grad in grads]

    def _hand_hooks_on(self, outs: Sequence[Any]) -> None:
        """Let hooks of the results hold for those of the function that ran again: a graph of the gradients leads through these."""
        for kind in ("tensor_hooks", "retained") if self.extra is not None else ():
            for slot, value in (getattr(self.extra, kind) or {}).items():
                node, place = slot_of(outs[slot]._edge)
                of_node = node.need_extra()
                known = getattr(of_node, kind) or {}
                if kind == "tensor_hooks" and known.get(place):
                    value = OrderedDict({**known[place], **value})
                setattr(of_node, kind, {**known, place: value})

    def release(self, freed: Any) -> None:
        self.done |= self.arrived - self.call.record.found.kept
        if len(self.done) == self.num_outputs:
            self.saved = self.call = None
            self.guard = freed


def has_hooks(tensor: Any) -> bool:
    """Tell whether a user would notice that gradients come to a tensor."""
    extra, edge = tensor._extra, tensor._edge
    if extra is not None and (extra.hooked or extra.hooks or extra.retains_grad):
        return True
    of_node = None if edge is None or edge is LEAF or edge is NOWHERE else slot_of(edge)[0].extra
    return of_node is not None and bool(of_node.tensor_hooks or of_node.retained)


def _laid_out(part: Any) -> Any:
    if type(part) is NDARRAY:
        return part if part.flags.c_contiguous else part.copy("C")
    return np.asarray(part)


def _new(array: Any) -> Any:
    """Return a gradient in memory of its own: in eager two tensors may get the same, or what a user has (`Node.makes_gradients`)."""
    return array.copy("K") if type(array) is NDARRAY else array


def _is_still(array: Any, before: Any) -> bool:
    """Tell whether a tensor has the array that it had; a number may be kept as an array since, of which there is another one."""
    return array is before or (not before.shape and np.array_equal(array, before, equal_nan=True))


def _copies(cells: Sequence[CellType]) -> tuple[CellType, ...]:
    made = []
    for one in cells:
        try:
            made.append(CellType(one.cell_contents))
        except ValueError:  # it is empty
            made.append(CellType())
    return tuple(made)


class Call:
    """One call of a compiled function, as its node remembers it."""

    __slots__ = (
        "args",
        "arrays",
        "before",
        "cells",
        "kwargs",
        "numbers",
        "record",
        "storages",
        "stream",
        "tensors",
        "transforms",
        "versions",
    )

    def __init__(
        self, record: Any, args: Any, kwargs: Any, tensors: Sequence[Any], arrays: Sequence[Any], storages: Sequence[Any],
        versions: Sequence[int], stream: Any = None, before: Any = ((), ()), numbers: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self.stream = stream  # where streams of random numbers stood before the call
        self.numbers = numbers  # Python's that are inputs
        self.cells = _copies(record.cells) if record.cells else ()
        self.before = (
            before  # copies of the arrays into which it writes, and the gradients that it replaces, as they were
        )
        self.record, self.args, self.kwargs, self.tensors = record, args, kwargs, tensors
        self.arrays, self.storages, self.versions = arrays, storages, versions  # of these, right after the call
        self.transforms = current_mode().transforms

    def function(self) -> Any:
        """Return the function, with what its cells held in the call."""
        function = self.record.function
        if not self.cells:
            return function
        code, defaults = function.__code__, function.__defaults__
        return FunctionType(code, function.__globals__, function.__name__, defaults, self.cells)

    def change(self) -> str | None:
        """Say why the function would run again on other numbers, or as another function."""
        kept = self.record.found.writes if self.before[0] else ()
        for at, (tensor, array, version) in enumerate(zip(self.tensors, self.arrays, self.versions, strict=True)):
            storage = tensor._storage
            changed = storage is not None and storage.version != version
            if at not in kept and (changed or not _is_still(tensor._array, array)):
                return (
                    "a tensor given to a compiled function was changed in place, or got other data, before its backward was "
                    "differentiated, or before a backward of some of its results only\nHint: these run the function again. Change a "
                    "clone() instead, or leave torch.compile out here."
                )
        if not self.record.is_as_then(self):
            return (
                "what a compiled function reads (a global, an attribute, a flag) was changed before its backward was differentiated, or "
                "before a backward of some of its results only\nHint: these run the function again. Change it after the backward."
            )
        return None

    @contextmanager
    def drawing_as_then(self) -> Iterator[None]:
        """Run a block that draws the random numbers of the call, and leaves the streams where they are."""
        now = None if self.stream is None else self.stream.now()
        try:
            if self.stream is not None:
                self.stream.put_back()
            yield
        finally:
            if now is not None:
                now.put_back()

    @contextmanager
    def inside_again(self) -> Iterator[None]:
        """Run a block inside the transforms of the call: a grad in it keeps the graphs of what depends on their variables."""
        ended = [one for one in self.transforms if not one.alive]
        try:
            for one in ended:
                one.alive = True
            yield
        finally:
            for one in ended:
                one.alive = False

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Run a block in which what the call has changed is as it was, and may be changed again."""
        arrays, grads = self.before
        changed = [*self.record.found.writes, *self.record.found.grads] if arrays or grads else []
        with one_at_a_time if changed else nullcontext():
            snapshots = [Snapshot(self.tensors[at]) for at in dict.fromkeys(changed)]
            try:
                for one in snapshots:
                    one.show(one.array, one.edge, copy(one.extra))
                for at, array in zip(self.record.found.writes, arrays, strict=True):
                    self.tensors[at]._array = array.copy("K")
                for at, grad in zip(self.record.found.grads, grads, strict=True):
                    self.tensors[at]._need_extra().grad = grad
                yield
            finally:
                for one in snapshots:
                    one.restore()

    @contextmanager
    def apart(self, graph: bool) -> Iterator[None]:
        """Run a block that takes gradients of captured tensors as if nothing else led to them, or on from them to others.

        The backward that asks for these gradients calls hooks, and adds what comes by other ways. Tensors that do not require
        gradients any more did in the call.
        """
        record = self.record
        captured = [self.tensors[at] for at in record.differentiated if at >= record.given]
        shown = [one for one in captured if graph or one._edge is not LEAF or has_hooks(one)]
        with one_at_a_time if shown else nullcontext():
            snapshots = [Snapshot(one) for one in shown]
            edges = [edge_of(vocabulary.alias(one)) if graph and one._edge is not None else LEAF for one in shown]
            try:
                for one, edge in zip(snapshots, edges, strict=True):
                    extra = Extra()
                    extra.view = None if one.extra is None else one.extra.view
                    one.show(one.array, edge, extra, one.storage)
                yield
            finally:
                for one in snapshots:
                    one.restore()

    def again(self, graph: bool) -> tuple[list[Any], list[Any]]:
        """Run the function in eager: its results that require gradients, and the tensors whose gradients are wanted."""
        record = self.record
        stand_ins: dict[int, Any] = {}
        for at in record.differentiated:
            tensor = self.tensors[at]
            if at < record.given:  # an argument: another tensor can stand for it
                has_graph = graph and tensor._edge is not None
                stand_ins[id(tensor)] = vocabulary.alias(tensor) if has_graph else wrap(tensor._array, LEAF)
        args, kwargs = swapped(self.args, stand_ins), swapped(self.kwargs, stand_ins)
        with self.drawing_as_then():
            outs = record.again(self, args, kwargs)
        return outs, [stand_ins.get(id(self.tensors[at]), self.tensors[at]) for at in record.differentiated]
