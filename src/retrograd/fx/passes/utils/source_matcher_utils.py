"""Find the nodes that a function or a kind of module became."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call of a source, what they take, what others use of them, and their parameters."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Return for each wanted source, such as `torch.nn.Linear`, the groups of nodes that came of it.

    Nodes tell their source in `meta`, as tracers wrote it: `source_fn_stack`, `torch_fn` or `nn_module_stack`. A group with a node that
    `filter_fn` refuses is left out.
    """
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        found = _source_of(node, wanted_sources)
        if found is not None:
            source, name = found
            groups.setdefault(source, {}).setdefault(name, []).append(node)
    return {
        source: [
            _partition(nodes, source) for nodes in named.values() if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, named in groups.items()
    }


def _source_of(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Return the source of a node, and the name of the call that it belongs to."""
    if node.meta.get("source_fn_stack") is not None:
        name, source = node.meta["source_fn_stack"][-1][:2]
        return (source, name) if source in wanted else None
    if node.meta.get("torch_fn") is not None:
        name, dotted = node.meta["torch_fn"]
        source = dotted.split(".")[1]
        if source in wanted:
            return source, name
    if node.op == "call_function" and node.meta.get("nn_module_stack"):
        path, kind = list(node.meta["nn_module_stack"].values())[-1]
        for source in wanted:
            if _is_kind(kind, source):
                return source, path
    return None


def _is_kind(kind: Any, source: Any) -> bool:
    if not isinstance(source, type):
        return bool(kind == source)
    if isinstance(kind, type):
        return issubclass(kind, source)
    return bool(kind == f"{source.__module__}.{source.__qualname__}")


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    given = [arg for node in nodes for arg in node.args if isinstance(arg, Node)]
    return SourcePartition(
        nodes,
        source,
        list(dict.fromkeys(arg for arg in given if arg not in inside and arg.op != "get_attr")),
        [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)],
        [node for node in nodes if node.op == "get_attr"],
    )


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Tell whether the second takes something of the first."""
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
