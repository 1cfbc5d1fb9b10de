"""Which box of the graph a tensor, a node or a leaf belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import ref

from .._core.shown import OURS
from .._graph.node import Node
from .._graph.walk import edges_of, node_of
from .._native.machine import Made
from ..tensor import _base
from ..tensor._aliasing.entering import entered
from ._memory import Memory
from ._saved_bytes import pieces_of, saved_values
from ._statistics import Statistics, statistics_of
from ._trace import FORWARD, INPUT, OPERATION, PARAMETER, Leaf, Operation, SavedValue, Step, Trace, Value

ALIASED = "the value left the graph by .data, or by memory that is shared"


class Moment(NamedTuple):
    """What is measured before and after a step: the time; how many kernels were compiled and read so far, and how long that took."""

    time: int
    compiled: int
    read: int
    making: int


def moment() -> Moment:
    """Return what is measured now."""
    return Moment(perf_counter_ns(), Made.compiled, Made.read, Made.nanoseconds)


def _between(began: Moment, ended: Moment) -> Iterator[int]:
    return (b - a for a, b in zip(began, ended, strict=True))


class Boxes:
    """Adds to a trace, and finds again what was added. See Note [What a recording sees] in `_recorder.py`."""

    def __init__(
        self,
        trace: Trace,
        *,
        statistics: bool,
        group: Callable[[], int] = lambda: -1,
        name: Callable[[Any], str] = lambda tensor: "",
    ) -> None:
        self.trace = trace
        self.memory = Memory(lambda: len(trace.steps))
        self.origin = moment()
        self.run = 0  # the backward that is running; 0: none
        self.when_ran: Callable[[], None] = lambda: None  # called after each step
        self.leaves: dict[int, tuple[Any, int]] = {}  # by id: a weak reference, and the number of the leaf
        self.leaf_names: dict[int, tuple[Any, str]] = {}
        self._statistics = statistics
        self._group = group
        self._name = name  # what the program calls a tensor, where it is now
        self._tensors: dict[int, tuple[Any, int]] = {}
        self._nodes: dict[int, tuple[Any, int]] = {}
        self._leaf_boxes: dict[tuple[int, int], int] = {}  # a leaf has a box in each call of a module that uses it

    # ---- adding ----
    def add(self, box: Operation) -> int:
        """Add a box, and return its number."""
        self.trace.operations.append(box)
        return len(self.trace.operations) - 1

    def ran(self, kind: str, at: int, began: Moment | None = None, ended: Moment | None = None, **facts: Any) -> None:
        """Add a step; one whose end is not known took no time."""
        began = began or moment()
        took, compiled, read, making = _between(began, ended or began)
        start, live = began.time - self.origin.time, self.memory.live
        self.trace.steps.append(Step(kind, at, self.run, start, took - making, live, compiled, read, making, **facts))
        self.when_ran()

    def close(self) -> None:
        """End: what happens now is none of the trace's business."""
        self.memory.is_closed = True
        _, self.trace.compiled, self.trace.read, self.trace.making = _between(self.origin, moment())

    def add_result(self, at: int, tensor: Any, *, written: bool) -> None:
        """Note that an operation has returned a tensor, or has written into it."""
        self.trace.operations[at].values.append(self._value(tensor))
        self.remember(tensor, at, written=written)

    def _value(self, tensor: Any) -> Value:
        array = tensor._array
        dtype = str(tensor.dtype).removeprefix("torch.")
        value = Value(tuple(array.shape), dtype, math.prod(array.shape) * array.dtype.itemsize, self.described(array))
        self.memory.watch(array, value)
        return value

    def described(self, array: Any) -> Statistics | None:
        """Describe an array, if that was asked for."""
        return statistics_of(array) if self._statistics else None

    def remember(self, tensor: Any, at: int, *, written: bool) -> None:
        """Note which operation the value of a tensor comes from."""
        self._tensors[id(tensor)] = (ref(tensor), at)
        self.memory.set_maker(tensor._array, at, written=written)

    def note_memory(self, tensors: Iterable[Any]) -> None:
        """Count the memory of tensors that have no box."""
        for tensor in tensors:
            self.memory.watch(tensor._array)

    # ---- tensors ----
    def sources(self, tensors: Iterable[Any]) -> list[int]:
        """Return the operations that the values of tensors come from."""
        return list(dict.fromkeys(at for tensor in tensors for at in self._sources_of(tensor)))

    def _sources_of(self, tensor: Any) -> list[int]:
        """Return the operation that made a tensor, and a later one that wrote into its memory."""
        tensor = outermost(tensor)
        if self._is_named(tensor):  # a parameter of a module, even if it was seen being made
            return [self.of_leaf(tensor)]
        known = self._tensors.get(id(tensor))
        if known is None or known[0]() is not tensor:
            made = self._made_unseen(tensor)
        elif self._has_new_history(tensor):  # a custom Function has returned what an operation in it has made
            made = self._made_unseen(tensor)
            self.trace.operations[made].inputs.append(known[1])
            self.trace.operations[made].computed_by = known[1]
        else:
            made = known[1]
        written = self.memory.maker(tensor._array)
        return [made, written] if written > made else [made]

    def _has_new_history(self, tensor: Any) -> bool:
        target = None if tensor._edge is None else node_of(tensor._edge)
        return isinstance(target, Node) and id(target) not in self._nodes

    def _made_unseen(self, tensor: Any) -> int:
        """Return the box of a tensor that no operation returned."""
        target = None if tensor._edge is None else node_of(tensor._edge)
        if isinstance(target, Node):
            at = self.of_node(target)
            if not self.trace.operations[at].values:
                self.trace.operations[at].values.append(self._value(tensor))
            self.remember(tensor, at, written=False)
            return at
        aliased = (
            self.memory.maker(tensor._array) if target is None else -1
        )  # a leaf is its own, whatever memory it has
        if aliased < 0:
            return self.of_leaf(tensor)
        made = self.trace.operations[aliased]
        if not made.node and made.kind != PARAMETER:
            return aliased
        at = self.add(Operation("data", OPERATION, self._group(), -1, [aliased], cut=True, remark=ALIASED))
        self.add_result(at, tensor, written=False)
        self.ran(FORWARD, at)
        return at

    def result_of(self, at: int) -> Any:
        """Return a tensor that an operation has made, if one is alive."""
        alive = (tensor() for tensor, made in self._tensors.values() if made == at)
        return next((tensor for tensor in alive if tensor is not None), None)

    # ---- leaves ----
    def of_leaf(self, tensor: Any) -> int:
        """Return the box of a tensor that was there before; a parameter has one in each call of a module that uses it."""
        number = self.leaf(tensor)
        leaf = self.trace.leaves[number]
        kind = PARAMETER if leaf.requires_grad or self._is_named(tensor) else INPUT
        group = self._group() if kind == PARAMETER else -1
        if (found := self._leaf_boxes.get((number, group))) is None:
            found = self.add(Operation(leaf.name, kind, group, -1, values=[leaf.value], leaf=number))
            self._leaf_boxes[number, group] = found
            self.memory.set_maker(tensor._array, found, written=False)
        return found

    def leaf(self, tensor: Any) -> int:
        """Return the number of a leaf."""
        known = self.leaves.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        number = len(self.trace.leaves)
        made = self._tensors.get(id(tensor))
        name = "leaf" if tensor.requires_grad else "tensor"
        if made is not None and made[0]() is tensor:  # by an operation that was recorded
            self.trace.operations[made[1]].leaf = number
            name = self.trace.operations[made[1]].name
        name = self._name(tensor) or name
        if self._is_named(tensor):
            name = self.leaf_names[id(tensor)][1]
        self.trace.leaves.append(Leaf(name, self._value(tensor), tensor.requires_grad))
        if tensor.requires_grad:
            self.memory.count(tensor._array)
        self.leaves[id(tensor)] = (ref(tensor), number)
        return number

    def name_leaf(self, tensor: Any, name: str) -> None:
        """Give a leaf its name in a module; it may have been seen before, when the module was made."""
        if self._is_named(tensor):
            return
        self.leaf_names[id(tensor)] = (ref(tensor), name)
        known = self.leaves.get(id(tensor))
        if known is not None and known[0]() is tensor:
            self.trace.leaves[known[1]].name = name
            for (leaf, _), at in self._leaf_boxes.items():
                if leaf == known[1]:
                    self.trace.operations[at].name = name

    def _is_named(self, tensor: Any) -> bool:
        named = self.leaf_names.get(id(tensor))
        return named is not None and named[0]() is tensor

    # ---- nodes ----
    def of_node(self, node: Any) -> int:
        """Return the operation of a node; if it has none, it becomes one, after those that lead to it."""
        known = self._nodes.get(id(node))
        if known is not None:
            return known[1]
        unknown, stack = {node}, [node]
        while stack:
            for edge in edges_of(stack.pop()):
                target = node_of(edge)
                if isinstance(target, Node) and id(target) not in self._nodes and target not in unknown:
                    unknown.add(target)
                    stack.append(target)
        for one in sorted(unknown, key=lambda each: each.seq):
            self._add_unseen(one)
        return self._nodes[id(node)][1]

    def _add_unseen(self, node: Any) -> None:
        targets = [node_of(edge) for edge in edges_of(node)]
        inputs = [
            self._nodes[id(one)][1] if isinstance(one, Node) else self.of_leaf(one) for one in targets if _is_real(one)
        ]
        stack = self.trace.places.of_node(node)
        at = self.add(Operation(readable(node), OPERATION, self._group(), stack, list(dict.fromkeys(inputs))))
        self.own(node, at)
        self.ran(FORWARD, at)

    def claim(self, tensor: Any, at: int, number: int) -> None:
        """Give an operation the nodes behind its result that were made in it: those younger than a number."""
        stack = [] if tensor._edge is None else [node_of(tensor._edge)]
        while stack:
            one = stack.pop()
            if isinstance(one, Node) and one.seq > number and id(one) not in self._nodes:
                self.own(one, at)
                stack += map(node_of, edges_of(one))

    def own(self, node: Any, at: int) -> None:
        """Give a node to an operation, with what it saves."""
        key = id(node)
        self._nodes[key] = (ref(node, partial(self._node_died, key)), at)
        box = self.trace.operations[at]
        box.node = box.node or type(node).__name__
        for name, value in saved_values(node):
            box.saved += self._saved(OURS.get(name, name), value)

    def _saved(self, name: str, value: Any) -> Iterator[SavedValue]:
        for part in value if isinstance(value, (tuple, list)) else (value,):
            size = sum(dict(pieces_of(part)).values())
            if not size:
                continue
            for wrapper in ("array", "value", "_array"):  # of a Function's, of what hooks have packed, of a Tensor
                part = getattr(part, wrapper, part)
            maker = self.memory.maker(part)
            shape, dtype = tuple(getattr(part, "shape", ())), str(getattr(part, "dtype", type(part).__name__))
            yield SavedValue(name, shape, dtype, size, maker if maker >= 0 else None, self.memory.count(part))

    def describe_saved_output(self, node: Any) -> None:
        """Give the operation of a node its value, where the graph has kept it."""
        box = self.trace.operations[self.of_node(node)]
        found: Any = dict(saved_values(node)).get("out")
        if not box.values and hasattr(found, "shape") and hasattr(found, "dtype"):
            size = math.prod(found.shape) * found.dtype.itemsize
            box.values.append(Value(tuple(found.shape), str(found.dtype), size, self.described(found)))

    def _node_died(self, key: int, _: Any) -> None:
        self.release(self._nodes.pop(key)[1])

    def release(self, at: int) -> None:
        """Note that what an operation saved was given back."""
        box = self.trace.operations[at]
        if box.saved and box.released is None and not self.memory.is_closed:
            box.released = len(self.trace.steps)


def outermost(tensor: Any) -> Any:
    """Return the tensor that one inside of a transform shows."""
    while (link := entered(tensor)) is not None:
        tensor = link.outer
    return tensor


def _is_real(target: Any) -> bool:
    """Tell whether an edge leads to a node or a tensor; that of a tensor without a history leads nowhere."""
    return isinstance(target, (Node, _base.Tensor))


def readable(node: Any) -> str:
    """Return the name of a node as a program would say it: AddmmBackward0 is addmm, a Function's is its own."""
    name = type(node).__name__
    if node.primitive is not None and name.endswith("Backward0"):
        words = name.removesuffix("Backward0")
        return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(words))
    return name.removesuffix("Backward")


def tensors_in(value: Any) -> Iterator[Any]:
    """Return the tensors in arguments or results, however they are packed."""
    if isinstance(value, _base.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
