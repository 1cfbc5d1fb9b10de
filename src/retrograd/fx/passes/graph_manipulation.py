"""Replace targets, and count the bytes that nodes need."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._public import set_all
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target, map_arg
from .shape_prop import ShapeProp, TensorMetadata


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Let all nodes that do one thing do another, with the same arguments."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in fx_module.graph.nodes:
        if (node.op, node.target) == (old_op, old_target):
            args, kwargs = map_arg(node.args, copies.__getitem__), map_arg(node.kwargs, copies.__getitem__)
            copies[node] = graph.create_node(new_op, new_target, args, dict(kwargs), node.name)
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):  # noqa: N801 - torch's name
    """Bytes of what a node gives, and of that and its parameters."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Note at each node, as `size_bytes`, what it needs; with `args` the graph is run first to learn the shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Return what `ShapeProp` noted at a node."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta  # type: ignore[no-any-return]


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Return the bytes that a node needs; parameters count as if they had the dtype of the result."""
    meta = get_tensor_meta(node)
    parameters = fx_module.get_submodule(node.target).parameters() if node.op == "call_module" else ()
    given = meta.shape.numel()
    total = given + sum(parameter.numel() for parameter in parameters)
    return size_bytes(given * meta.dtype.itemsize, total * meta.dtype.itemsize)


set_all(globals())
