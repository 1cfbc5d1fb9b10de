"""Walks over a graph, from the edges of outputs towards the leaves."""

from __future__ import annotations

from typing import Any

from .._core import primitive as core
from .node import Node, Slot


def node_of(edge: Any) -> Any:
    """Return the node, or the leaf, that an edge leads to."""
    return edge.node if type(edge) is Slot else edge


def edges_of(node: Any) -> list[Any]:
    """Return the edges of a node that lead somewhere; a leaf has none."""
    return [edge for edge in node._edges if edge is not None] if isinstance(node, Node) else []


def graph_of(edges: list[Any]) -> tuple[set[Node], set[Any]]:
    """Return the nodes and the leaf tensors behind edges."""
    nodes: set[Node] = set()
    leaves: set[Any] = set()
    stack = list(edges)
    while stack:
        target = node_of(stack.pop())
        if isinstance(target, Node):
            if target not in nodes:
                nodes.add(target)
                stack += edges_of(target)
        elif isinstance(target, core.tensor_type):
            leaves.add(target)
    return nodes, leaves


def is_edge(one: Any, other: Any) -> bool:
    """Tell whether two edges lead to one output of one node, or to one leaf."""
    if node_of(one) is not node_of(other):
        return False
    return getattr(one, "index", 0) == getattr(other, "index", 0) if type(one) is type(other) is Slot else True


def path_between(start: Any, target: Any, fruitless: set[int] | None = None) -> list[Any] | None:
    """Return the edges of a shortest path between two edges, or None.

    `fruitless` are ids of nodes that do not lead to the target; those found are added.
    """
    fruitless = set() if fruitless is None else fruitless
    before: dict[int, Any] = {id(node_of(start)): None}
    line = [start]
    if is_edge(start, target):
        return line
    for edge in line:
        node = node_of(edge)
        if id(node) in fruitless:
            continue
        for following in edges_of(node):
            if is_edge(following, target):
                path = [following, edge]
                while (previous := before[id(node_of(path[-1]))]) is not None:
                    path.append(previous)
                return path[::-1]
            if id(node_of(following)) not in before:
                before[id(node_of(following))] = edge
                line.append(following)
    fruitless.update(id(node_of(edge)) for edge in line)
    return None
