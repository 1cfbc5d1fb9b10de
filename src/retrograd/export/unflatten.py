"""`unflatten`: an exported program with its modules again, each with the part of the graph that was its."""

from __future__ import annotations

import operator
from typing import Any

from .. import nn
from .._tracebacks import guard_public
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node, boundary
from ..utils import _pytree as pytree
from .exported_program import ExportedProgram, forget_in_state


class FlatArgsAdapter:
    """Turns arguments of one structure into those of another; subclass it, and write `adapt`."""

    def adapt(self, target_spec: Any, input_spec: Any, input_args: list[Any], *rest: Any) -> list[Any]:
        """Return the leaves of `target_spec` made of those of `input_spec`."""
        raise NotImplementedError("FlatArgsAdapter: write adapt(target_spec, input_spec, input_args)")


class InterpreterModule(GraphModule):
    """A module of the program: its part of the graph."""


class UnflattenedModule(nn.Module):
    """An exported program whose modules are modules again."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        graph, attributes = export_module._with_state()
        top = _built(graph, "", (), attributes)
        self.__dict__["_top"], self.__dict__["_call"] = top, export_module.call_spec
        self.flat_args_adapter = flat_args_adapter
        for table in ("_modules", "_parameters", "_buffers"):
            self.__dict__[table] = top.__dict__[table]
        forget_in_state(self, [name for name in attributes if name not in export_module.state_dict])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves, given = pytree.tree_flatten((args, kwargs))
        if given != self._call.in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this with the right arguments?"
                )
            leaves = self.flat_args_adapter.adapt(self._call.in_spec, given, leaves)
        return pytree.tree_unflatten(list(self._top(*leaves)), self._call.out_spec)

    @property
    def graph(self) -> Graph:
        """The graph of the whole, which calls the modules."""
        return self._top.graph  # type: ignore[no-any-return]


def _built(graph: Graph, prefix: str, stack: tuple[str, ...], attributes: dict[str, Any]) -> InterpreterModule:
    """Make a module of a graph, in which the nodes of each of its modules are a call of that module."""
    own: dict[str, Any] = {}
    made = Graph()
    done: dict[Node, Any] = {}
    calls: dict[str, int] = {}
    for child, nodes in _runs(graph, stack):
        if child is None:
            for node in nodes:
                done[node] = made.node_copy(node, lambda n: done[n])
                if node.op == "get_attr":
                    own[node.target] = attributes[prefix + node.target]
            continue
        path = child.partition("@")[0]
        inputs, outputs, part = _part(nodes, prefix, path)
        count = calls[path] = calls.get(path, -1) + 1
        target = path.removeprefix(prefix) + (f"@{count}" if count else "")
        own[target] = _built(part, f"{path}.", (*stack, child), attributes)
        call = made.call_module(target, tuple(done[node] for node in inputs))
        if len(outputs) == 1:
            done[outputs[0]] = call
        for i, node in enumerate(outputs if len(outputs) > 1 else ()):
            done[node] = made.call_function(operator.getitem, (call, i))
    return InterpreterModule(own, made, "InterpreterModule")


def _runs(graph: Graph, stack: tuple[str, ...]) -> list[tuple[str | None, list[Node]]]:
    """Return the nodes of a graph in runs that belong to one module each; None for those of the graph itself."""
    runs: list[tuple[str | None, list[Node]]] = []
    for node in graph.nodes:
        keys = [key for key in node.meta.get("nn_module_stack") or {} if key]
        is_below = len(keys) > len(stack) and tuple(keys[: len(stack)]) == stack
        child = keys[len(stack)] if is_below and node.op.startswith("call") else None
        if node.op == "get_attr" or (runs and runs[-1][0] == child):
            place = [run for run in runs if run[0] is None] if node.op == "get_attr" else runs[-1:]
            if not place:
                runs.append((None, []))
                place = runs[-1:]
            place[0][1].append(node)  # reads of state come first: they depend on nothing
        else:
            runs.append((child, [node]))
    return runs


def _part(nodes: list[Node], prefix: str, path: str) -> tuple[list[Node], list[Node], Graph]:
    """Return what the nodes of a module take from outside, what others take from them, and their graph."""
    outside, outputs = boundary(nodes)
    graph, own = Graph(), {}
    inputs = []
    for node in outside:
        if node.op == "get_attr" and f"{prefix}{node.target}".startswith(f"{path}."):
            own[node] = graph.get_attr(f"{prefix}{node.target}".removeprefix(f"{path}."))
        else:
            inputs.append(node)
    for node in inputs:
        own[node] = graph.placeholder(node.name)
    for node in nodes:
        own[node] = graph.node_copy(node, lambda n: own[n])
    results = tuple(own[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 else results)
    return inputs, outputs, graph


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """Return a program with its modules again."""
    return UnflattenedModule(module, flat_args_adapter)


guard_public(globals())
