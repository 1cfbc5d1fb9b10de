"""Compute once what a graph computes from its parameters alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import retrograd as torch

from ... import nn
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module with a second graph, which runs before the first call; its results are read as parameters."""

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Run the second graph, and keep its results."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        kept = nn.ParameterList(map(self._parameter, folded)) if isinstance(folded, tuple) else self._parameter(folded)
        setattr(self, self.fx_const_folded_attrs_name, kept)

    def _parameter(self, value: Any) -> nn.Parameter:
        if isinstance(value, int):
            value = torch.tensor([float(value)], device=self.device_for_folded_attrs)
        return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """Return a name like this one that can be an attribute, and that the module does not have."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        numbered = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def split_const_subgraphs(
    module: nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """Put the nodes that need only parameters into a graph of their own, which runs once.

    Nodes that draw random numbers or do something else than compute stay where they are, and those for which `skip_folding_node_fn`
    returns True.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    for part in list(split.children()):
        # The parts call modules by names of their own; their nodes are to stand in the graph of `split`.
        for node in part.graph.find_nodes(op="call_module"):
            setattr(split, node.target, getattr(part, node.target))
    (call,) = split.graph.find_nodes(op="call_module", target="submod_0")
    const_graph = _reading(split, call)
    several = isinstance(const_graph.output_node().args[0], tuple)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, nn.ParameterList() if several else nn.Parameter())
    with split.graph.inserting_before(call):
        folded = split.graph.get_attr(name)
    folded.meta = call.meta.copy()
    call.replace_all_uses_with(folded)
    if hasattr(split, "submod_1"):
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, const_graph, name, device_for_folded_attrs)


def _constant_nodes(traced: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    found: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or (
            node.op != "get_attr" and not found.issuperset(node.all_input_nodes)
        ):
            continue
        if (skip is not None and skip(node)) or node.is_impure():
            continue
        if node.op == "call_module" and _does_more_than_compute(traced.get_submodule(node.target)):
            continue
        found.add(node)
    return found


def _does_more_than_compute(module: nn.Module) -> bool:
    if not isinstance(module, GraphModule):
        return False
    return any(
        node.is_impure() if node.op == "call_function" else _does_more_than_compute(module.get_submodule(node.target))
        for node in module.graph.nodes
        if node.op in ("call_function", "call_module")
    )


def _reading(split: GraphModule, call: Node) -> Graph:
    """Return the graph of the module that a node calls, with reads of attributes instead of arguments."""
    graph: Graph = split.get_submodule(call.target).graph
    GraphModule(split, graph)  # the attributes are those of `split` from now on
    for placeholder, given in zip(graph.find_nodes(op="placeholder"), call.args, strict=True):
        if not isinstance(given, Node) or given.op != "get_attr":
            raise AssertionError(f"Expected get_attr, got {getattr(given, 'op', given)}")
        with graph.inserting_before(placeholder):
            read = graph.create_node("get_attr", given.target)
        read.meta = placeholder.meta.copy()
        placeholder.replace_all_uses_with(read)
        graph.erase_node(placeholder)
    return graph


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Node]:
    """Put the nodes of a module that `gm` calls in the place of the call; return them by the nodes that they copy."""
    inner = gm.get_submodule(inline_mod_name)
    if not isinstance(inner, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(inner)}")
    call = next(iter(gm.graph.find_nodes(op="call_module", target=inline_mod_name)), None)
    if call is None:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    arguments = iter(call.args)
    here: dict[Node, Any] = {}
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            here[node] = call.kwargs[node.name] if node.name in call.kwargs else next(arguments)
        elif node.op == "output":
            _use_instead(gm.graph, call, map_arg(node.args[0], here.__getitem__), here)
        else:
            with gm.graph.inserting_before(call):
                here[node] = gm.graph.node_copy(node, here.__getitem__)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return here


def _use_instead(graph: Graph, call: Node, results: Any, here: dict[Node, Any]) -> None:
    """Let the users of a call take its results; users that take one of several out are the result itself."""
    if isinstance(results, Node):
        call.replace_all_uses_with(results)
        return
    for user in list(call.users):
        if user.target is operator.getitem and isinstance(user.args[1], int):
            user.replace_all_uses_with(results[user.args[1]])
            graph.erase_node(user)
            here[user] = results[user.args[1]]
        else:
            user.args = map_arg(user.args, lambda n: results if n is call else n)
            user.kwargs = dict(map_arg(user.kwargs, lambda n: results if n is call else n))
