"""Replace every place in a graph that looks like a pattern."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import nn
from .._tracebacks import guard_public
from ._symbolic_trace import symbolic_trace
from .graph import Graph, attribute_at
from .graph_module import GraphModule, _assign_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher


class Match(NamedTuple):
    """One place: its last node, and which node stands for which of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """One place, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace what looks like `pattern` by `replacement`, both functions or modules; return the places.

    What the parameters of the pattern stand for become the arguments of the replacement, in order.
    """
    return [Match(each.anchor, each.nodes_map) for each in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace as `replace_pattern` does, but only places that all filters accept; a callback may write each replacement."""
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(source: Any) -> Graph:
    if isinstance(source, GraphModule):
        return source.graph
    return source if isinstance(source, Graph) else symbolic_trace(source).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph = gm.graph
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match)
        if all(accept(match, graph, pattern_graph) for accept in match_filters or [])
    ]
    common = None if replacement is None else _graph_of(replacement)
    if common is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    replaced: list[ReplacedPatterns] = []
    moved: dict[Node, Node] = {}  # nodes of earlier places, by what stands there now
    for match in matches:
        new_graph = replacement_callback(match, graph, pattern_graph) if replacement_callback else common
        if new_graph is None:
            raise AssertionError("replacement graph is None")
        replaced.append(_replace_one(graph, match, new_graph, moved))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_attributes(gm, replacement)
    return replaced


def _replace_one(graph: Graph, match: InternalMatch, new: Graph, moved: dict[Node, Node]) -> ReplacedPatterns:
    placeholders = [node for node in new.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(placeholders):
        raise AssertionError(
            f"Expected {len(match.placeholder_nodes)} placeholders, got {len(placeholders)}: the replacement takes other arguments"
        )
    values: dict[Node, Any] = {}
    for placeholder, given in zip(placeholders, match.placeholder_nodes, strict=True):
        values[placeholder] = moved.get(given, given) if isinstance(given, Node) else given
    own = [
        node
        for pn, node in match.nodes_map.items()
        if isinstance(node, Node) and pn.op not in ("placeholder", "output")
    ]
    order = {node: i for i, node in enumerate(graph.nodes)}
    users = [user for node in match.returning_nodes for user in node.users if user not in own]
    place = min(users, key=order.__getitem__) if users else max(own, key=order.__getitem__).next
    inputs = [order[value] for value in values.values() if isinstance(value, Node)]
    if own and inputs and order.get(place, len(order)) <= max(inputs):
        place = max(own, key=order.__getitem__)
    before = set(graph.nodes)
    with graph.inserting_before(place):
        results = graph.graph_copy(new, values)
    made = [node for node in graph.nodes if node not in before]
    results = results if isinstance(results, (list, tuple)) else (results,)
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Expected {len(match.returning_nodes)} results, got {len(results)}")
    for old, result in zip(match.returning_nodes, results, strict=True):
        if isinstance(result, Node):
            old.replace_all_uses_with(result)
            moved[old] = result
    for node in sorted(own, key=order.__getitem__, reverse=True):
        if not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], dict(match.nodes_map), made)


def _take_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Copy the modules and tensors that the replacement's nodes name."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if attribute_at(gm, node.target) is not None:
            continue
        value = attribute_at(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced '
                "attribute does not exist in either the original GraphModule `gm` or the replacement GraphModule `replacement`"
            )
        _assign_attr(copy.deepcopy(value), gm, node.target)
    gm.graph.lint()


guard_public(globals())
