"""Watching the engine: which node runs when, what arrives at it and what comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType, SimpleNamespace
from typing import Any

from .._graph.node import Node
from .._graph.walk import node_of
from .._modes import current_mode
from .._places import user_frame
from ..autograd._explain import why_not
from ..autograd._observing import Observer
from ..tensor import _base
from ._boxes import Boxes, moment
from ._statistics import is_finite, is_zero
from ._trace import BACKWARD, Operation

MOST_EXPLAINED = 12  # of the parameters without a gradient; a frozen half of a model has hundreds, all for one reason


class Watcher(Observer):
    """Adds the runs of the engine to a trace."""

    def __init__(
        self,
        boxes: Boxes,
        is_seeing: Callable[[], bool],
        program: Callable[[], AbstractContextManager[Any]] = nullcontext,
        until: Callable[[], FrameType | None] = lambda: None,
    ) -> None:
        self.boxes = boxes
        self.roots: set[int] = set()  # operations from which a backward began
        self.reached: set[int] = set()  # leaves
        self.unreached: dict[int, str] = {}  # leaves, and why no gradient comes to them
        self._is_seeing = is_seeing
        self._program = program  # the block in which a node runs that calls the program
        self._until = until
        self._runs: list[tuple[int, int]] = []  # those that have not ended: their numbers and boxes
        self._count = 0

    def backward_begins(self, roots: Sequence[Any], counts: Mapping[Any, int]) -> Watcher | None:
        """Note where a run begins, and why it will not reach leaves that have been seen."""
        if not self._is_seeing():
            return None
        boxes = self.boxes
        begins = [boxes.of_node(node_of(root)) for root in roots if isinstance(node_of(root), Node)]
        self.roots.update(begins)
        self._count += 1
        boxes.run = self._count
        stack = boxes.trace.places.stack(user_frame(sys._getframe(1)), self._until())
        self._runs.append((self._count, boxes.add(Operation("backward", BACKWARD, -1, stack, begins))))
        boxes.ran(BACKWARD, self._runs[-1][1])
        reached = {boxes.leaf(one) for one in counts if isinstance(one, _base.Tensor)}
        self.reached |= reached
        if current_mode().transforms:  # its variables take the gradients, and leaves expect none
            return self
        for reference, number in list(boxes.leaves.values()):
            leaf = reference()
            if leaf is None or number in reached or not leaf.requires_grad or not begins:
                continue
            if number not in self.unreached:
                few = len(self.unreached) < MOST_EXPLAINED
                self.unreached[number] = self._why(begins[0], leaf) if few else ""
        return self

    def _why(self, root: int, leaf: Any) -> str:
        """Say, as `autograd.explain` does, why a leaf will get no gradient from a run."""
        output = self.boxes.result_of(root)
        if output is None:
            return ""
        reason, cuts = why_not(output, leaf, user_frame(sys._getframe(1)))
        reason = reason.removeprefix("No gradient flows from output to input").lstrip(".: ")
        reason = reason.replace("output", "what backward began from")
        places = [f"{cut.how}: {' '.join(cut.place.split())}" for cut in cuts]
        return " ".join([reason[:1].upper() + reason[1:], *places])

    def backward_ends(self, roots: Sequence[Any]) -> None:
        """Describe the gradients that leaves have now, which come from this run."""
        _, box = self._runs.pop()
        self.boxes.run = self._runs[-1][0] if self._runs else 0
        for reference, number in list(self.boxes.leaves.values()):
            leaf = reference()
            if leaf is not None and number in self.reached and leaf.grad is not None:
                self.boxes.trace.leaves[number].gradient = self.boxes.described(leaf.grad._array)
                self.boxes.remember(leaf.grad, box, written=True)

    @contextmanager
    def node(self, node: Any, g: Any, released: Any) -> Iterator[Any]:
        """Time a node, and describe what arrives and what comes out."""
        boxes, run = self.boxes, SimpleNamespace(pairs=())
        if not self._is_seeing():  # any more: the recording has ended in this run
            yield run
            return
        at = boxes.of_node(node)
        box = boxes.trace.operations[at]
        given = [_raw(one) for one in (g if type(g) is tuple else (g,)) if one is not None]
        arrived = [one for one in map(boxes.described, given) if one is not None]
        for one in given:
            boxes.memory.watch(one)
        del given, g  # so that memory goes when the engine lets go of it
        calls_program = node.primitive is None or bool(getattr(node.guard, "packed", None))
        began = moment()
        try:
            with self._program() if calls_program else nullcontext():
                yield run
        finally:
            ended = moment()
            if arrived and type(node).__name__ == box.node:
                box.gradient = arrived[0]
            if released is not None:
                boxes.release(at)
            facts = self._judged(arrived, run)
            boxes.ran(BACKWARD, at, began, ended, name=type(node).__name__, **facts)

    def _judged(self, arrived: list[Any], run: Any) -> dict[str, bool]:
        """Say whether NaN, or nothing but zeros, came out of something else; note the leaves that take a gradient."""
        finite, spoiled, zeros = all(one.is_finite for one in arrived), False, []
        for edge, grad in run.pairs:
            if edge is None or grad is None:
                continue
            array = _raw(grad)
            self.boxes.memory.watch(array)
            if arrived:
                spoiled = spoiled or (finite and not is_finite(array))
                zeros.append(is_zero(array))
            if isinstance(edge, _base.Tensor):
                leaf = self.boxes.trace.leaves[self.boxes.leaf(edge)]
                if (now := len(self.boxes.trace.steps)) not in leaf.steps[-1:]:  # once, if it is both operands
                    leaf.steps.append(now)
                leaf.gradient = self.boxes.described(array) if leaf.gradient is None else leaf.gradient
        run.pairs = ()
        stopped = bool(zeros) and all(zeros) and any(one.zeros < 1 for one in arrived)
        return {"finite": finite, "spoiled": spoiled, "stopped": stopped}


def _raw(gradient: Any) -> Any:
    return gradient._array if isinstance(gradient, _base.Tensor) else gradient
