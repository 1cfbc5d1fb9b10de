"""Compute what a graph computes twice only once."""

from __future__ import annotations

from typing import Any

from .....ops import aten
from .....utils._pytree import tree_flatten
from .... import Graph, GraphModule, Node
from ...infra.pass_base import PassBase, PassResult


def _operations(names: str) -> set[Any]:
    return {getattr(aten, name) for name in names.split()}


rand_ops = _operations(
    """dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like rand
    randint randn randperm"""
)
inplace_ops = _operations("add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_")


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802 - torch's name
    """Return the operations that give something else each time, or write into an argument."""
    return rand_ops | inplace_ops


class CSEPass(PassBase):
    """Lets nodes that do the same to the same use the first of them. `banned_ops` are left alone."""

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module whose graph does nothing twice; the given one if it does not."""
        graph = Graph()
        here: dict[Node, Node] = {}
        first: dict[Any, tuple[Any, Node]] = {}
        changed = False
        for node in graph_module.graph.nodes:
            if node.op in ("placeholder", "output", "get_attr") or self._is_banned(node):
                here[node] = graph.node_copy(node, here.__getitem__)
                continue
            leaves, shape = tree_flatten((node.args, node.kwargs))
            values = tuple(here.get(leaf, leaf) if isinstance(leaf, Node) else leaf for leaf in leaves)
            kinds = tuple(type(value) for value in values)  # 1, 1.0 and True are equal, but do not do the same
            key = (node.op, node.target, values, kinds)
            try:
                known = first.setdefault(key, (shape, node))
            except TypeError:  # something that has no hash, such as a slice
                known = (shape, node)
            if known[1] is not node and known[0] == shape:
                here[node], changed = here[known[1]], True
                continue
            here[node] = graph.node_copy(node, here.__getitem__)
        return PassResult(GraphModule(graph_module, graph) if changed else graph_module, changed)

    def _is_banned(self, node: Node) -> bool:
        return getattr(node.target, "overloadpacket", node.target) in self.banned_ops
