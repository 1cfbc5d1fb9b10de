"""What a run of the engine is asked for, where that is not `.grad` of every leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._graph.node import Slot
from .._modes import current_mode
from ..tensor import _base
from ..tensor._base import wrap
from ._hooks import run_tensor_hooks


class Capture:
    """The gradients that `grad` returns, or the tensors that `backward(inputs=...)` fills."""

    __slots__ = ("accumulate", "found", "inputs", "seen", "wanted")

    def __init__(self, inputs: Sequence[Any], accumulate: bool = False) -> None:
        self.inputs = inputs
        self.accumulate = accumulate
        self.seen: dict[int, Any] = {}  # id of an array -> its Tensor: what passes unchanged is one tensor
        self.found: dict[tuple[int, int], Any] = {}
        self.wanted = {id(edge.node if type(edge) is Slot else edge) for edge in inputs}

    def wants_all(self, ends: Sequence[Any]) -> bool:
        """Tell whether what is wanted are the leaves at which the graph ends: then every node runs, and none is asked."""
        wanted, leaf_types = self.wanted, _base.leaf_types
        if self.accumulate or len(ends) != len(wanted):
            return False
        return all([id(end) in wanted and type(end) in leaf_types for end in ends])

    def needed(self, counts: dict[Any, int]) -> set[int]:
        """Return the ids of nodes that run: a wanted node or leaf can be reached from them."""
        consumers: dict[int, list[Any]] = {}
        for node in counts:
            for edge in node._edges:
                if edge is not None:
                    target = edge.node if type(edge) is Slot else edge
                    consumers.setdefault(id(target), []).append(node)
        found: set[int] = set(self.wanted) if self.accumulate else set()  # to fill `.grad`, torch runs the node itself
        stack = list(self.wanted)
        while stack:
            for node in consumers.get(stack.pop(), ()):
                if id(node) not in found:
                    found.add(id(node))
                    stack.append(id(node))
        return found

    def passes(self, node: Any, g: Any, graph: bool, needed: Any, single: bool) -> bool:
        """Keep the gradient of a wanted node; tell whether the node runs. One that does not runs its hooks here.

        Of several roots torch does not even visit those that are not needed.
        """
        runs = id(node) in needed
        if not runs and node.extra is not None and (single or id(node) in self.wanted):
            g = run_tensor_hooks(node, g, graph)
        if id(node) in self.wanted and not self.accumulate:
            for slot, part in enumerate(g if type(g) in (list, tuple) else (g,)):
                if part is not None:
                    self.keep(node, slot, part, graph)
        return runs

    def ends_at(self, node: Any, needed: Any) -> bool:
        """Tell whether nothing below a node is wanted: its hooks run, but it computes nothing (a user's backward is called)."""
        if not self.accumulate or id(node) not in self.wanted or node.runs_without_gradient:
            return False
        targets = [edge.node if type(edge) is Slot else edge for edge in node._edges if edge is not None]
        return not any(id(target) in needed for target in targets)

    def mask(self, node: Any, needed: Any) -> list[Any] | None:
        """Return a node's edges with None for those behind which nothing is wanted; None if it has no such edges."""
        found: list[Any] | None = None
        for i, edge in enumerate(node._edges):
            if edge is not None:
                target = id(edge.node if type(edge) is Slot else edge)
                if target not in needed and target not in self.wanted:
                    found = list(node._edges) if found is None else found
                    found[i] = None
        return found

    def masked(self, node: Any, grads: Any, needed: Any) -> list[Any]:
        """Leave out the gradients that torch does not compute because nothing wanted lies behind them."""
        found = []
        for edge, grad in zip(node._edges, grads, strict=False):
            target = edge.node if type(edge) is Slot else edge
            found.append(grad if edge is None or id(target) in needed or id(target) in self.wanted else None)
        return found

    def keep(self, node: Any, slot: int, g: Any, graph: bool) -> None:
        """Keep a gradient that was asked for."""
        tensor = g if graph else self.seen.get(id(g))
        if tensor is None:
            tensor = self.seen[id(g)] = wrap(g)
            if current_mode().inference:
                _base.storage_of(tensor).inference = True
        self.found[(id(node), slot)] = tensor

    def results(self) -> list[Any]:
        """Return what was found, in the order of the inputs."""
        keys = [(id(e.node), e.index) if type(e) is Slot else (id(e), 0) for e in self.inputs]
        return [self.found.get(key) for key in keys]
