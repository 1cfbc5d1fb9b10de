"""Which of the cuts that were noted stand between two tensors."""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType
from typing import Any

import numpy as np

from .._core.arrays import owner_of_memory, raw_leaf
from .._graph.cuts import Cut, recent_cuts
from .._graph.node import Node
from .._graph.walk import graph_of, node_of, path_between
from ..tensor._base import edge_of
from ._explain_source import Way

MOST = 8  # cuts that are shown
NO_PATH = "No gradient flows from output to input"


def why_not(output: Any, target: Any, frame: FrameType) -> tuple[str, list[Cut]]:
    """Say why no path leads from a tensor to an edge; `frame` asks. Returns words, and the cuts they introduce."""
    nodes, leaves = graph_of([] if output._edge is None else [edge_of(output)])
    possible = _possible(target)
    way = Way(frame)
    links = _Links(output, nodes, leaves)
    surely, perhaps = [], []
    for cut in possible:
        if cut.code is None:
            how = f"{cut.how}(), which has no gradient"
            places = way.places_of(cut.how)
            surely += [cut._replace(how=how, where=where) for where in places or ()]
            perhaps += [cut._replace(how=how)] if places is None else []
            continue
        leads = way.leads_through(cut.code, cut.offset)
        if leads or links.has(cut):
            surely.append(cut)
        elif leads is None:
            perhaps.append(cut)
    held = [cut for cut in surely if cut.source is not None and cut.source() is not None]
    if not held and (surely or perhaps) and way.never_reads(target):
        return f"{NO_PATH}: input was never used in what led to output.", []
    if surely:
        return f"{NO_PATH}. On the way from input to output, values left the graph here:", surely[-MOST:]
    taken_in = [] if output._edge is None else [node.seq for node in nodes if _takes_values_in(node)]
    if output._edge is None or taken_in:
        perhaps = [cut for cut in perhaps if not taken_in or cut.number < max(taken_in)]
        if perhaps:
            return (
                f"{NO_PATH}. These lines took values out of the graph, or switched gradients off; it is not known whether output was "
                "computed from such values:",
                perhaps[-MOST:],
            )
    if output._edge is not None:
        hidden = (
            f" {REENTRANT}, and what that uses besides its arguments is not in the graph." if runs_again(nodes) else ""
        )
        return (
            f"{NO_PATH}: output does not depend on it according to its graph, which begins at other leaves.{hidden}",
            [],
        )
    if output._array.dtype.kind not in "fcV":
        return f"{NO_PATH}: output is {output.dtype}, and only floating point and complex tensors have gradients.", []
    return f"{NO_PATH}: output requires no grad. {_FROM_NOTHING}", []


_FROM_NOTHING = "None of the values it was computed from does, or they were integers, as indices are."


REENTRANT = "There is a reentrant checkpoint on the way"


def runs_again(nodes: Iterable[Any]) -> bool:
    """Tell whether a reentrant checkpoint is among nodes."""
    return any(type(node).__name__ == "CheckpointFunctionBackward" for node in nodes)


def _possible(target: Any) -> list[Cut]:
    """Return the cuts of values that depend on the target, or may have, one for each place, the oldest first."""
    since = node_of(target).seq if isinstance(node_of(target), Node) else 0
    fruitless: set[int] = set()
    found: dict[Any, Cut] = {}
    for cut in recent_cuts():
        if cut.number <= since:
            continue
        source = None if cut.source is None else cut.source()
        if source is None or path_between(source, target, fruitless) is not None:
            key = (cut.code, cut.offset, cut.how)
            found.pop(key, None)
            found[key] = cut
    return list(found.values())


class _Links:
    """What a graph holds of the results of cuts: leaves made of them, and their memory among saved values."""

    def __init__(self, output: Any, nodes: set[Any], leaves: set[Any]) -> None:
        self.tensors = {id(output), *map(id, leaves)}
        self.memory = {id(owner_of_memory(raw_leaf(leaf._array))) for leaf in leaves}
        for node in nodes:
            for name in node.array_names:
                value = getattr(node, name, None)
                if isinstance(value, np.ndarray):
                    self.memory.add(id(owner_of_memory(value)))

    def has(self, cut: Cut) -> bool:
        result = None if cut.result is None else cut.result()
        if result is None:
            return False
        array = result._array
        return id(result) in self.tensors or (
            isinstance(array, np.ndarray) and id(owner_of_memory(array)) in self.memory
        )


def _takes_values_in(node: Any) -> bool:
    """Tell whether an operation may have used a tensor that is not in the graph."""
    if node.primitive is None:
        given = getattr(node, "is_tensor_input", (True,) * len(node._edges))
        return any(edge is None and tensor for edge, tensor in zip(node._edges, given, strict=False))
    names = node.primitive.inputs
    for i, edge in enumerate(node._edges):
        if edge is None:
            value = getattr(node, names[i], None) if i < len(names) else None
            if value is None or not isinstance(value, (bool, int, float, complex)):
                return True
    return False
