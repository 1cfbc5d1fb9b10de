"""What rules return: new memory, the gradient that they were given, or a view of that. The engine writes into the first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.primitive import engine_state
from retrograd._graph.node import Node, Slot
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import each, function, on_all_samples


@each(DIFFERENTIABLE)
def test_rules_never_return_what_somebody_else_has(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    # products are not gathered, and no node joins another: Note [Regions] in `_graph/regions.py`
    task = SimpleNamespace(gather=lambda *product: False, counts={}, pending={})
    monkeypatch.setattr(engine_state, "task", task, raising=False)

    def check(sample: Sample) -> None:
        inputs = [torch.tensor(one) for one in arrays_of(op, sample, "float32")]
        for tensor, differs in zip(inputs, is_float(sample), strict=True):
            tensor.requires_grad_(differs and tensor.is_floating_point())
        results = function(op, sample)(*inputs)
        outputs = [one for one in (results if isinstance(results, (tuple, list)) else [results]) if one is not None]
        walk([one for one in outputs if isinstance(one, torch.Tensor)], inputs)

    on_all_samples(op, check)


def walk(outputs: list[Any], inputs: list[Any]) -> None:
    """Go through a graph as the engine does, and run every node twice."""
    arrays = [one._array for one in (*inputs, *outputs)]
    waiting: dict[Any, Any] = {}
    for one in outputs:
        if isinstance(one.grad_fn, Node) and one.is_floating_point():
            edge = one._edge
            add(waiting, edge if type(edge) is Slot else one.grad_fn, np.ones(one.shape, np.float32))
    while waiting:
        node = max(waiting, key=lambda one: one.seq)
        g = waiting.pop(node)
        g = tuple(g) if type(g) is list else g
        pairs = node.straight(g, None, False)
        if pairs is None:  # a write, whose gradients the engine does not take for its own
            pairs = [*zip(node._edges, node.pull_back(g, False), strict=True)]
        else:
            look(node, g, pairs, [*arrays, *values_in(node)])
        for edge, grad in pairs:
            if grad is not None and isinstance(edge.node if type(edge) is Slot else edge, Node):
                add(waiting, edge, grad)


def add(waiting: dict[Any, Any], edge: Any, grad: Any) -> None:
    if type(edge) is not Slot:
        waiting[edge] = grad if edge not in waiting else waiting[edge] + grad
        return
    parts = waiting.setdefault(edge.node, [None] * edge.node.num_outputs)
    parts[edge.index] = grad if parts[edge.index] is None else parts[edge.index] + grad


def look(node: Any, given: Any, pairs: Any, kept: list[Any]) -> None:
    """Look at the memory of gradients that are not, by their look, the gradient that was given."""
    parts = [one for one in (given if type(given) is tuple else (given,)) if one is not None]
    again = new_among(node.straight(given, None, False), parts)
    new = new_among(pairs, parts)
    for k, one in enumerate(new):
        for other in (*kept, *new[:k], *again):
            assert not np.shares_memory(one, other), f"{node.name()} returns memory that somebody else has"


def new_among(pairs: Any, given: list[Any]) -> list[Any]:
    """Return the gradients that the engine takes for its own."""
    arrays = [grad for edge, grad in pairs if edge is not None and type(grad) is np.ndarray and grad.size]
    whole = [one for one in arrays if one.base is None and not any(one is part for part in given)]
    views = [one for one in arrays if one.base is not None and one.flags.carray]
    return whole + [one for one in views if not any(one.base is part or one.base is part.base for part in given)]


def values_in(node: Any) -> list[Any]:
    """Return the arrays that a node keeps."""
    names = {name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ())}
    found: list[Any] = []
    pending = [getattr(node, name, None) for name in names - {"_edges", "__weakref__"}]
    while pending:
        one = pending.pop()
        if isinstance(one, np.ndarray):
            found.append(one)
        elif isinstance(one, (tuple, list)):
            pending += one
        elif isinstance(one, dict):
            pending += one.values()
    return found
