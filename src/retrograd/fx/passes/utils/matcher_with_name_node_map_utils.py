"""Find a pattern whose inner nodes have names."""

from __future__ import annotations

from ....utils._pytree import tree_flatten, tree_unflatten
from ...graph import Graph, _PyTreeInfo
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _without_names(gm: GraphModule) -> dict[str, Node]:
    """Take the dict of names off the end of what a pattern returns."""
    output = gm.graph.output_node()
    if gm._out_spec is None:
        raise AssertionError("gm._out_spec is None")
    returned = tree_unflatten(output.args[0], gm._out_spec)
    if not isinstance(returned, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(returned) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *results, names = returned
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, out_spec = tree_flatten(results)
    output.args = (flat,)
    codegen = gm.graph._codegen
    codegen.pytree_info = _PyTreeInfo(codegen.pytree_info.orig_args, codegen.pytree_info.in_spec, out_spec)  # type: ignore[attr-defined]
    gm.recompile()
    return names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Looks for a pattern that returns `result, {"conv": conv, "relu": relu}`; a match knows its nodes by these names."""

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.name_node_map = _without_names(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of the pattern; `name_node_map` of each has the nodes by name."""
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return found
