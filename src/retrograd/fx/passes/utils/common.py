"""Parts of a graph as modules of their own, and whether two graphs do the same."""

from __future__ import annotations

from collections.abc import Mapping

from ....nn import Module
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that only holds others."""

    def __init__(self, d: Mapping[str, Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Make a module of a graph that calls and reads what `gm` has.

    Also return where each path of `gm` is now, below `comp_name`.
    """
    made = GraphModule(gm, subgraph, class_name)
    made.training = True  # whatever `gm` is in
    paths = [node.target for node in subgraph.nodes if node.op in ("call_module", "get_attr")]
    return made, {path: f"{comp_name}.{path}" for path in paths}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Tell whether two graphs have the same nodes, connected in the same way."""
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))
