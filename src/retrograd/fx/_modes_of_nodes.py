"""Parts of a recorded graph that ran under other modes than its beginning become graphs of their own, called under those modes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from .._modes import current_mode
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, boundary


class Modes(NamedTuple):
    """What is switched on for a node: gradients, and autocast."""

    grad: bool
    autocast: tuple[str, Any] | None


def modes_now(inference_grad: bool = True) -> Modes:
    """Return the modes of this moment. No graph has inference mode: `inference_grad` says what gradients are in it."""
    mode = current_mode()
    return Modes(inference_grad if mode.inference else mode.grad, mode.autocast)


def wrap_parts(graph: Graph, modes: dict[Node, Modes], plain: Modes) -> dict[str, GraphModule]:
    """Let a graph call its nodes whose modes are not the plain ones under their modes; return the modules that it reads."""
    from .._control_flow import wrap_with_autocast, wrap_with_set_grad_enabled

    made: dict[str, GraphModule] = {}

    def wrap(differs: Callable[[Modes], bool], target: Any, first: Callable[[Modes], tuple[Any, ...]]) -> None:
        calls = [node for node in graph.nodes if node.op.startswith("call")]
        for key, nodes in groupby(calls, lambda node: modes.get(node, plain)):
            if differs(key):
                name = f"submod_{len(made) + 1}"
                made[name], new = _wrapped(graph, list(nodes), name, target, first(key))
                modes.update(dict.fromkeys(new, key))

    def autocast_arguments(key: Modes) -> tuple[Any, ...]:
        device, dtype = key.autocast or plain.autocast or ("cpu", None)
        return device, dtype, key.autocast is not None, None

    wrap(lambda key: key.autocast != plain.autocast, wrap_with_autocast, autocast_arguments)
    wrap(lambda key: key.grad != plain.grad, wrap_with_set_grad_enabled, lambda key: (key.grad,))
    return made


def _wrapped(
    graph: Graph, nodes: list[Node], name: str, target: Any, first: tuple[Any, ...]
) -> tuple[GraphModule, list[Node]]:
    """Replace nodes that follow each other by one call; return the module that it calls, and the nodes in their place."""
    inside, (inputs, outputs) = set(nodes), boundary(nodes)
    for read in inputs:
        if read.op == "get_attr":
            nodes[0].prepend(read)  # what it reads is there from the beginning
    part, own = Graph(), {}
    for node in inputs:
        own[node] = part.placeholder(node.name)
        own[node].meta.update(node.meta)
    for node in nodes:
        own[node] = part.node_copy(node, lambda each: own[each])
    part.output(tuple(own[node] for node in outputs))
    with graph.inserting_before(nodes[0]):
        read = graph.get_attr(name)
        call = graph.call_function(target, (*first, read, *inputs))
        new = [graph.call_function(operator.getitem, (call, i)) for i in range(len(outputs))]
    stacks = [node.meta.get("nn_module_stack") or {} for node in nodes]
    shared = takewhile(lambda item: all(item[0] in stack for stack in stacks), stacks[0].items())
    call.meta["nn_module_stack"] = dict(shared)
    for old, replacing in zip(outputs, new, strict=True):
        replacing.meta.update(old.meta | call.meta)
        old.replace_all_uses_with(replacing, delete_user_cb=lambda user: user not in inside)
    for node in reversed(nodes):
        graph.erase_node(node)
    return GraphModule({}, part), [call, *new]
