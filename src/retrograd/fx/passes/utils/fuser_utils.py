"""Put nodes of a graph into a module that the graph calls in their place."""

from __future__ import annotations

import copy
import operator

from ..._compatibility import compatibility as compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import NodeList, NodeSet, _by_need, _FirstWrittenFirst, stable_topological_sort
from ..tools_common import legalize_graph as legalize_graph
from .common import lift_subgraph_as_module


def topo_sort(nodes: NodeList) -> NodeList:
    """Return the nodes in an order in which they can run, as near as possible to the order given."""
    ordered = _by_need(nodes, _FirstWrittenFirst(nodes))
    if len(ordered) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


def validate_partition(partition: NodeList) -> bool:
    """Tell whether nodes can become one: no way out of them leads back."""
    inside = set(partition)
    open_ends = [user for node in partition for user in node.users if user not in inside]
    seen: NodeSet = set()
    while open_ends:
        node = open_ends.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            open_ends.extend(node.users)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module that does what nodes of `gm` do, the nodes it takes, and those of its nodes that others use.

    The nodes must stand in an order in which they can run. `gm` stays as it is.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
        if node.graph is not gm.graph:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    graph = Graph()
    placeholders: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def here(node: Node) -> Node:
        if node in inside:
            return copies[node]
        if node not in placeholders:
            placeholders[node] = graph.placeholder(node.name, type_expr=node.type)
            placeholders[node].meta = copy.copy(node.meta)
        return placeholders[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, here)
    used_outside = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(copies[node] for node in used_outside)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    made, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return made, tuple(placeholders), used_outside


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Let `gm` call a module, and use what it gives in the place of nodes."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
    if insertion_point is None:
        raise AssertionError(
            "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last partition node "
            "as insertion_point."
        )
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
        if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        elif orig_outputs:
            for i, old in enumerate(orig_outputs):
                old.replace_all_uses_with(call.graph.call_function(operator.getitem, (call, i)), propagate_meta=True)
            call.meta["val"] = tuple(old.meta.get("val") for old in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Take nodes out of a graph; they stand in an order in which they can run."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Put each group of nodes into a module, `fused_0`, `fused_1` and so on."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
