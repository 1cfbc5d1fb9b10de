"""torch.fx.experimental.optimization: modules made quicker for inference, by their graphs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval
from .. import Graph, GraphModule, Node, Tracer, symbolic_trace
from ..graph_module import GraphModule as _Module


def _parent_and_name(target: str) -> tuple[str, str]:
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Tell whether a node and the one before it call modules of two classes."""
    if not node.args:
        return False
    for expected, one in zip(pattern, (node.args[0], node), strict=False):
        if not isinstance(one, Node) or one.op != "call_module" or not isinstance(one.target, str):
            return False
        if one.target not in modules or type(modules[one.target]) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Put another module in the place of the one that a node calls."""
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, name = _parent_and_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Take batch norms into the convolutions before them, for evaluation."""
    patterns = [(getattr(nn, f"Conv{d}d"), getattr(nn, f"BatchNorm{d}d")) for d in (1, 2, 3)]
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, _Module) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in patterns:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            convolution, norm = modules[node.args[0].target], modules[node.target]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, fuse_conv_bn_eval(convolution, norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Any) -> Any:
    """Leave dropout out of a module."""
    from .. import Transformer

    class WithoutDropout(Transformer):
        """Hands the input of dropout on."""

        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            """Call a module unless it is dropout."""
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Any, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> Any:
    """Make a module of some nodes of a graph."""
    graph = Graph()
    known = {one: graph.placeholder(one.name) for one in inputs}
    for one in nodes:
        known[one] = graph.node_copy(one, lambda node: known[node])
    graph.output([known[one] for one in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


__all__ = ["Tracer", "extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
