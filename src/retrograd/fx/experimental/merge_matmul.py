"""One large matrix product instead of several with the same right side."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import retrograd as torch

from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node
from ..passes.tools_common import legalize_graph
from ..proxy import Proxy


def split_result_tensors(result: Any, inputs: list[Any]) -> Any:
    """Split a product by the rows of the left sides that were put together for it."""
    rows = [0] * len(inputs) if isinstance(result, Proxy) else [each.shape[0] for each in inputs]
    return torch.split(result, rows)


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Tell whether `a` needs `b`; yes also if that is not known after `search_depth` steps back."""
    if a is b:
        return True
    given = a.all_input_nodes
    if not given:
        return False
    return search_depth == 0 or any(may_depend_on(each, b, search_depth - 1) for each in given)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Tell whether none of the nodes needs another one."""
    return not any(may_depend_on(a, b) or may_depend_on(b, a) for a, b in itertools.combinations(nodes, 2))


def merge_matmul(in_mod: Any) -> GraphModule:
    """Trace a module, and put the left sides of products with the same right side together for one product."""
    gm: GraphModule = symbolic_trace(in_mod)
    graph = gm.graph
    by_right_side: dict[Any, list[Node]] = {}
    for node in graph.find_nodes(op="call_function", target=torch.matmul):
        right: Any = node.args[1]
        # Each read of an attribute is a node of its own: the attribute's name tells that they are the same.
        by_right_side.setdefault(right.target if right.op == "get_attr" else right, []).append(node)
    for right, products in by_right_side.items():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        left = [product.args[0] for product in products]
        whole = graph.call_function(torch.cat, (left,))
        other = graph.get_attr(right) if isinstance(right, str) else right
        # The call of split_result_tensors keeps the left sides: their rows are known when it runs.
        product = graph.call_function(torch.matmul, (whole, other))
        parts = graph.call_function(split_result_tensors, (product, left))
        items = [graph.call_function(operator.getitem, (parts, i)) for i in range(len(left))]
        for old, new in zip(products, items, strict=True):
            old.replace_all_uses_with(new)
            graph.erase_node(old)
    legalize_graph(gm).graph.lint()
    return gm
