"""What passes ask about nodes, and the order in which nodes can run."""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ... import nn
from ..._public import set_all
from ...tensor import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name, _torchs

Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """Return the dotted name of a class or function; a name stays as it is."""
    if isinstance(k, str):
        return k
    home = k.__module__ or ""
    if "acc_ops" in home:
        return f"acc_ops.{k.__name__}"
    return f"{_torchs(home).replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """Return the name of what a node calls: a function's, a method's, or that of the class of a module."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        if "acc_ops" in (getattr(node.target, "__module__", None) or ""):
            return f"acc_ops.{node.target.__name__}"
        return _get_qualified_name(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Tell whether `ShapeProp` has seen a node give a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


class FxNetAccFusionsFinder:
    """Finds groups of nodes that hand on values other than tensors, so that a split must not part them.

    Called, it gives for each node of a group the group. Groups that need a node outside `acc_nodes` are none, and their nodes are
    taken out of `acc_nodes`.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def __call__(self) -> dict[Node, NodeSet]:
        result: dict[Node, NodeSet] = {}
        for node in self.nodes:
            if node in self.acc_nodes and node not in result and _gives_no_tensor(node):
                group = self._group_of(node)
                if group <= self.acc_nodes:
                    result.update(dict.fromkeys(group, group))
                else:
                    self.acc_nodes -= group
        return result

    def _group_of(self, node: Node) -> NodeSet:
        group = {node}
        while True:
            near = {user for each in group if _gives_no_tensor(each) for user in each.users}
            near |= {given for each in group for given in each.all_input_nodes if _gives_no_tensor(given)}
            added = {each for each in near if each.op in CALLABLE_NODE_OPS} | self._between(group)
            if added <= group:
                return group
            group |= added

    def _between(self, group: NodeSet) -> NodeSet:
        """Return the nodes on the ways from one node of a group to another: they must run where the group does."""
        behind: NodeSet = set()
        for node in self.nodes:
            if any(given in group or given in behind for given in node.all_input_nodes):
                behind.add(node)
        before: NodeSet = set()
        for node in reversed(self.nodes):
            if any(user in group or user in before for user in node.users):
                before.add(node)
        return {node for node in behind & before if node.op in CALLABLE_NODE_OPS}


def _gives_no_tensor(node: Node) -> bool:
    return node.op in CALLABLE_NODE_OPS and "tensor_meta" not in node.meta


# Orders


class _Ready(Protocol):
    """The nodes that could run now; what is taken first makes the order."""

    def add(self, node: Node) -> None: ...
    def take(self) -> Node: ...
    def __len__(self) -> int: ...


def _by_need(nodes: Iterable[Node], ready: _Ready) -> list[Node]:
    """Return the nodes so that each comes after those that it takes; fewer if some wait for each other."""
    nodes = list(nodes)
    waiting = dict.fromkeys(nodes, 0)
    for node in nodes:
        waiting[node] = sum(given in waiting for given in node.all_input_nodes)
    for node in nodes:
        if not waiting[node]:
            ready.add(node)
    ordered: list[Node] = []
    while len(ready):
        node = ready.take()
        ordered.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.add(user)
    return ordered


# torch lets computations with sizes run early, so that checks of sizes come before what relies on them.
_EARLY = {getattr(operator, name) for name in "add mul sub floordiv truediv mod le lt ge gt eq ne".split()}  # noqa: SIM905


class _FirstReadyFirst(deque[Node]):
    def add(self, node: Node) -> None:
        early = node.op == "call_function" and node.target in _EARLY and node.all_input_nodes
        (self.appendleft if early else self.append)(node)

    def take(self) -> Node:
        return self.popleft()


class _FirstWrittenFirst:
    """Takes the node that stood first."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.place = {node: i for i, node in enumerate(nodes)}
        self.heap: list[tuple[int, Node]] = []

    def add(self, node: Node) -> None:
        heapq.heappush(self.heap, (self.place[node], node))

    def take(self) -> Node:
        return heapq.heappop(self.heap)[1]

    def __len__(self) -> int:
        return len(self.heap)


def _rearrange(gm: GraphModule, ready: _Ready, error: type[Exception]) -> GraphModule:
    nodes = list(gm.graph.nodes)
    ordered = _by_need(nodes, ready)
    if len(ordered) < len(nodes):
        left = set(nodes) - set(ordered)
        raise error(f"Input graph has cycles, unable to add {[node for node in nodes if node in left]}")
    graph, copies = Graph(), dict[Node, Node]()
    for node in ordered:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module's graph into an order in which they can run: those that become ready first come first."""
    return _rearrange(gm, _FirstReadyFirst(), RuntimeError)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module's graph into an order in which they can run, as near as possible to the order that they have."""
    return _rearrange(gm, _FirstWrittenFirst(gm.graph.nodes), AssertionError)


set_all(globals())
