"""Split a graph by tags on its nodes."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

from ..._public import set_all
from ..graph import Graph, attribute_at
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .tools_common import CALLABLE_NODE_OPS, is_node_output_tensor
from .utils.common import HolderModule, lift_subgraph_as_module


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute at a path, or None."""
    return attribute_at(obj, name)


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a path."""
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """The part of one tag: its graph, and the nodes of the whole graph that it takes and gives."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


class _Splitting:
    """The parts while they are filled."""

    def __init__(self, tags: list[str]) -> None:
        self.components = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
        self.home: dict[Node, Component] = {}
        self.copies: dict[Node, Node] = {}
        self.crossing: dict[Node, None] = {}  # what the outer graph must have

    def add(self, node: Node) -> None:
        """Copy a node into the part of its tag."""
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        component = self.components[node.tag]
        latest = max((self.home[given].order for given in node.all_input_nodes if given in self.home), default=0)
        if component.order < latest:
            raise AssertionError(
                f"Component {component.name} order must be >= max of its upstream components, order={component.order} and "
                f"max={latest}"
            )
        self.home[node] = component
        self.copies[node] = made = component.graph.node_copy(node, lambda given: self._inside(component, given))
        made.tag = node.tag  # type: ignore[attr-defined]

    def _inside(self, component: Component, node: Node) -> Node:
        if node.op == "get_attr":
            if node not in component.getattr_maps:
                made = component.graph.get_attr(node.target, type_expr=node.type)
                made.meta = copy.copy(node.meta)
                component.getattr_maps[node] = made
            return component.getattr_maps[node]
        if self.home.get(node) is component:
            return self.copies[node]
        if node not in component.orig_inputs:
            made = component.graph.placeholder(node.name, type_expr=node.type)
            made.meta = copy.copy(node.meta)
            component.orig_inputs.append(node)
            component.input_placeholders.append(made)
            self.crossing[node] = None
        return component.input_placeholders[component.orig_inputs.index(node)]


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,  # noqa: N803 - torch's name
) -> Any:
    """Put the nodes of each tag (their attribute `tag`) into a module of that name; they are called in the order of `tags`.

    With `return_fqn_mapping` also return where each module and parameter is now.
    """
    splitting = _Splitting(tags)
    outer, values = Graph(), dict[Node, Node]()
    output: Node | None = None
    for node in gm.graph.nodes:
        if node.op == "output":
            if output is not None:
                raise RuntimeError("Multiple output nodes in graph!")
            output = node
        elif node.op == "placeholder":
            values[node] = outer.placeholder(node.name, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op != "get_attr":
            splitting.add(node)
    if output is None:
        raise RuntimeError("Graph had no output node!")
    read = [node for node in output.all_input_nodes if node.op == "get_attr"]
    for node in read:
        values[node] = outer.get_attr(node.name, type_expr=node.type)
    splitting.crossing.update(dict.fromkeys(node for node in output.all_input_nodes if node not in values))
    for node in splitting.crossing:
        if node in splitting.home:
            splitting.home[node].orig_outputs.append(node)

    moved: dict[str, str] = {}
    for component in splitting.components.values():
        results = tuple(splitting.copies[node] for node in component.orig_outputs)
        is_single = len(results) == 1 and not return_tuple
        component.graph.output(results[0] if is_single else results)
        component.gm, paths = lift_subgraph_as_module(gm, subgraph=component.graph, comp_name=component.name)
        moved.update(paths)
        call = outer.call_module(component.name, args=tuple(values[node] for node in component.orig_inputs))
        for i, node in enumerate(component.orig_outputs):
            values[node] = call if is_single else call.graph.call_function(operator.getitem, (call, i))
    outer.output(map_arg(output.args[0], values.__getitem__))
    outer._codegen = gm.graph._codegen
    root = HolderModule({tag: component.gm for tag, component in splitting.components.items()})
    for node in read:
        setattr(root, node.name, getattr_recursive(gm, node.target))
    made = GraphModuleCls(root, outer)
    return (made, moved) if return_fqn_mapping else made


def move_non_tensor_nodes_on_boundary(subgraphs: list[Any]) -> None:
    """Move nodes that give no tensor from a part on the accelerator to the one that uses them, if nobody else does.

    The parts have `nodes` and `is_acc`; `ShapeProp` must have run. What depends on such a node moves along with it.
    """
    part_of = {node: i for i, part in enumerate(subgraphs) for node in part.nodes}

    def inside(nodes: Any) -> list[Node]:
        return [node for node in nodes if node.op in CALLABLE_NODE_OPS and node in part_of]

    def elsewhere(node: Node, at: int) -> set[int]:
        return {part_of[user] for user in inside(node.users)} - {at}

    def dependents(node: Node, start: int, goal: int) -> list[Node] | None:
        """Return the node and all behind it that are in its part; None if a way leads to a third part."""
        found: dict[Node, None] = {}
        ways = [node]
        while ways:
            each = ways.pop()
            if part_of[each] == goal or each in found:
                continue
            if part_of[each] != start:
                return None
            found[each] = None
            ways.extend(inside(each.users))
        return list(found)

    for at, part in enumerate(subgraphs):
        if not part.is_acc:
            continue
        queue = [node for node in part.nodes if not is_node_output_tensor(node) and elsewhere(node, at)]
        done: set[Node] = set()
        while queue:
            node = queue.pop(0)
            if node in done or part_of[node] != at:
                continue
            done.add(node)
            goals = elsewhere(node, at)
            if len(goals) != 1:
                print(
                    f"Cannot move non-tensor node {node.name} on boundary because it has children in multiple subgraphs"
                )
                continue
            goal = goals.pop()
            moving = dependents(node, at, goal)
            if moving is None:
                continue
            for each in moving:
                part.nodes.remove(each)
                subgraphs[goal].nodes.append(each)
                part_of[each] = goal
                print(
                    f"In order move the non-tensor node {node.name} on boundary, moved node {each.name} from acc_{at} to "
                    f"{'acc' if subgraphs[goal].is_acc else 'gpu'}_{goal}"
                )
            parents = inside(node.all_input_nodes)
            queue += [each for each in parents if part_of[each] == at and not is_node_output_tensor(each)]


set_all(globals())
