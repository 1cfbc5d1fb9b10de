"""Operations that torch follows but cannot differentiate: their node says so in backward."""

from __future__ import annotations

from typing import Any

from ..._graph.node import Node


class NotImplementedNode(Node):
    """The node of an operation without a derivative formula."""

    __slots__ = ("operation",)

    def pull_back(self, g: Any, graph: bool) -> Any:
        raise RuntimeError(f"derivative for {self.operation} is not implemented")


NotImplementedNode.__name__ = NotImplementedNode.__qualname__ = "NotImplemented"  # torch's name


def without_derivative(operation: str, edges: tuple[Any, ...]) -> Node:
    """Make the node of an operation."""
    node = NotImplementedNode().begin(edges)
    node.operation = operation
    return node
