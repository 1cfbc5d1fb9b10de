"""Make a trained model quicker to run: norms fused into the layers before them, dropouts removed.

torch can also run parts of a model in a layout of the MKL library. There is one layout here, so that step finds nothing to do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from ... import nn
from ..._public import set_all
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

_FUSED: dict[tuple[type, type], Any] = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, nn.Module]) -> bool:
    """Tell whether a node calls a layer of the second type on what a layer of the first type gave."""
    if not node.args:
        return False
    return all(
        isinstance(each, Node) and each.op == "call_module" and type(modules.get(each.target)) is kind
        for kind, each in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, nn.Module], new_module: nn.Module) -> None:
    """Put another module in the place of the one that a node calls."""
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    home, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[home], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Fuse batch norms into the convolutions and linear layers before them; the model must be in eval mode."""
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern, fused in _FUSED.items():
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            layer: Any = node.args[0]
            norm = modules[node.target]
            if len(layer.users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(layer, modules, fused(modules[layer.target], norm))
            node.replace_all_uses_with(layer)
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropouts(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(self.submodules[target], nn.Dropout):
            return super().call_module(target, args, kwargs)
        if len(args) != 1:
            raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
        return args[0]


def remove_dropout(model: nn.Module) -> nn.Module:
    """Trace a model, and leave its dropouts out."""
    return _WithoutDropouts(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Return a module that runs some nodes of a graph: `inputs` become its arguments, `outputs` the list that it returns."""
    graph = Graph()
    here = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        here[node] = graph.node_copy(node, here.__getitem__)
    graph.output([here[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(
    model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> nn.Module:
    """Fuse norms and remove dropouts, unless `pass_config` sets `conv_bn_fuse` or `remove_dropout` to False."""
    default = {"heuristic": use_mkl_length}
    config = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": default, **(pass_config or {})}
    if config["conv_bn_fuse"]:
        model = fuse(model)
    if config["remove_dropout"]:
        model = remove_dropout(model)
    layout = config["mkldnn_layout_optimize"]
    if layout is False:
        return model
    if not isinstance(layout, dict):
        raise RuntimeError("mkldnn_layout_optimize config is not a dict")
    if "heuristic" not in layout:
        raise RuntimeError("Heuristic not found in mkldnn_layout_optimize config")
    own = tracer()
    graph = own.trace(copy.deepcopy(model))
    return GraphModule(own.root, graph)


# The layout of MKL: programs may ask, and no module has a form in it.


class MklSubgraph:
    """Nodes that could run in the layout, with those before and after them that convert."""

    def __init__(self, fx_graph: Graph) -> None:
        self.fx_graph = fx_graph
        self.nodes: list[Node] = []
        self.start_nodes: list[Node] = []
        self.end_nodes: list[Node] = []


def use_mkl_length(graph: MklSubgraph) -> bool:
    """Tell whether there are more than two nodes."""
    return len(graph.nodes) > 2


def gen_mkl_autotuner(example_inputs: Any, iters: int = 10, warmup: int = 1) -> Callable[[MklSubgraph], bool]:
    """Return a function that tells whether nodes run quicker in the layout: they do not."""
    return lambda graph: False


def modules_to_mkldnn(nodes: list[Node], modules: dict[str, nn.Module]) -> dict[nn.Module, nn.Module]:
    """Convert the modules that have a form in the layout, and return the old ones by the new: none has."""
    return {}


def reset_modules(
    nodes: Iterable[Node], modules: dict[str, nn.Module], old_modules: dict[nn.Module, nn.Module]
) -> None:
    """Put the old modules back."""
    for node in nodes:
        if node.op == "call_module" and modules[node.target] in old_modules:
            replace_node_module(node, modules, old_modules[modules[node.target]])


class UnionFind:
    """Sets that grow together; the elements are 0 to n - 1."""

    def __init__(self, n: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.size = [0] * n

    def make_set(self, v: int) -> None:
        """Let an element be a set of its own."""
        self.parent[v], self.size[v] = v, 1

    def find(self, v: int) -> int:
        """Return the element that stands for the set of another."""
        way = []
        while (above := self.parent[v]) != v:
            if above is None:
                raise AssertionError("Parent is None")
            way.append(v)
            v = above
        for each in way:
            self.parent[each] = v
        return v

    def join(self, a: int, b: int) -> int | None:
        """Make one set of the sets of two elements; the larger one's element stands for it."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        large, small = (b, a) if self.size[a] < self.size[b] else (a, b)
        self.parent[small] = large
        self.size[large] += self.size[small]
        return None


set_all(globals())
