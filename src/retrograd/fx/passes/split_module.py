"""Split a graph into parts: a module for each, and a graph that calls them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import nn
from ..graph import Graph, attribute_at
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """A part: the nodes in it, what it takes and gives by the names of nodes, and the parts before and after it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Put the nodes to which `split_callback` gives the same number into one module, `submod_0` and so on.

    `qualname_map` is filled with the old path of each module at its new one. With `keep_original_order` the parts are called in the
    order in which they begin, else in one in which they can run.
    """
    nodes = {node.name: node for node in m.graph.nodes}
    part_of: dict[Node, Partition] = {}
    parts: dict[str, Partition] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        number = str(split_callback(node))
        name = number if partition_affix is None else f"{partition_affix}_{number}"
        part_of[node] = parts.setdefault(name, Partition(name))
        part_of[node].node_names.append(node.name)
        node._fx_partition = name  # type: ignore[attr-defined]  # torch's users read it
    _note_what_crosses(m, part_of)
    runnable = _runnable_order(parts)  # it tells of parts that wait for each other, too

    for name in runnable:
        _add_inputs(parts[name], m, nodes, keep_original_input_name)
    for node, part in part_of.items():
        _copy_into(part, node, m, keep_original_node_name, qualname_map)
    outer = _Outer(m, keep_original_node_name)
    if not keep_original_order:
        outer.add(m.graph.nodes)
    else:
        outer.add(node for node in m.graph.nodes if node.op == "placeholder")
    for name in parts if keep_original_order else runnable:
        outer.add(nodes[given] for given in parts[name].inputs)
        outer.call(parts[name], nodes, tuple_return)
    return outer.finished(parts)


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """Split a module by a table of the numbers of its nodes; the parts are called in the order in which they begin."""
    return split_module(m, m, node_to_partition.__getitem__, keep_original_order=True, partition_affix=partition_affix)


def _attribute(module: Any, path: str) -> Any:
    found = attribute_at(module, path)
    if found is None:
        raise AttributeError(f"Node target {path} not found!")
    return found


def _note_what_crosses(m: GraphModule, part_of: dict[Node, Partition]) -> None:
    """Let the parts know what they take from and give to each other."""
    for node in m.graph.nodes:
        user = part_of.get(node)
        for given in node.all_input_nodes:
            source = part_of.get(given)
            if source is user:
                continue
            if source is not None:
                source.outputs.setdefault(given.name)
            if user is not None:
                user.inputs.setdefault(given.name)
            if source is not None and user is not None:
                source.dependents.setdefault(user.name)
                user.dependencies.setdefault(source.name)


def _runnable_order(parts: dict[str, Partition]) -> list[str]:
    ready = [name for name, part in parts.items() if not part.dependencies]
    order: list[str] = []
    while ready:
        name = ready.pop()
        order.append(name)
        for dependent in parts[name].dependents:
            del parts[dependent].dependencies[name]
            if not parts[dependent].dependencies:
                ready.append(dependent)
    if len(order) != len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return order


def _add_inputs(part: Partition, m: GraphModule, nodes: dict[str, Node], keep_name: bool) -> None:
    """Add a placeholder for each value that a part takes; modules that it reads it gets as its own."""
    modules = [
        name
        for name in part.inputs
        if nodes[name].op == "get_attr" and isinstance(_attribute(m, nodes[name].target), nn.Module)
    ]
    values = [name for name in part.inputs if name not in modules]
    for i, name in enumerate(values):
        made = part.graph.placeholder(name if keep_name else f"arg_{i}", type_expr=nodes[name].type)
        part.environment[nodes[name]] = made
    for name in modules:
        target = nodes[name].target
        part.environment[nodes[name]] = part.graph.get_attr(target)
        part.targets[target] = _attribute(m, target)
    for old, new in part.environment.items():
        new.meta = old.meta.copy()
    part.inputs = dict.fromkeys(values)


def _copy_into(
    part: Partition, node: Node, m: GraphModule, keep_name: bool | None, qualname_map: dict[str, str] | None
) -> None:
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = _attribute(m, node.target)
        if qualname_map is not None:
            qualname_map[f"{part.submod_name}.{target}"] = node.target
    made = part.graph.create_node(
        node.op,
        target,
        map_arg(node.args, part.environment.__getitem__),
        dict(map_arg(node.kwargs, part.environment.__getitem__)),
        node.name if keep_name else None,
        node.type,
    )
    made.meta = node.meta.copy()
    part.environment[node] = made


class _Outer:
    """The graph that calls the parts."""

    def __init__(self, m: GraphModule, keep_name: bool | None) -> None:
        self.m, self.keep_name = m, keep_name
        self.graph = Graph()
        self.values: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}

    def add(self, nodes: Any) -> None:
        """Add arguments and reads of attributes that are not there yet."""
        for node in nodes:
            if node.name in self.values:
                continue
            if node.op == "placeholder":
                name = node.name if self.keep_name else node.target
                made = self.graph.create_node("placeholder", name, node.args, type_expr=node.type)
            elif node.op == "get_attr":
                self.attributes[node.target] = _attribute(self.m, node.target)
                made = self.graph.get_attr(node.target)
            else:
                continue
            made.meta = node.meta.copy()
            self.values[node.name] = made

    def call(self, part: Partition, nodes: dict[str, Node], tuple_return: bool) -> None:
        """End a part's graph, and call its module."""
        results = tuple(part.environment[nodes[name]] for name in part.outputs)
        is_single = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if is_single else results)
        self.attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        call = self.graph.call_module(part.submod_name, tuple(self.values[name] for name in part.inputs))
        for i, name in enumerate(part.outputs):
            self.values[name] = call if is_single else call.graph.call_function(operator.getitem, (call, i))

    def finished(self, parts: dict[str, Partition]) -> GraphModule:
        """Return the module of the graph."""
        for node in self.m.graph.find_nodes(op="output"):
            self.add(node.all_input_nodes)
            self.graph.output(map_arg(node.args[0], lambda n: self.values[n.name]))
        made = GraphModule(self.attributes, self.graph)
        made.meta["partition_names"] = {part.submod_name for part in parts.values()}
        return made
