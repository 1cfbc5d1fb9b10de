"""What hooks may ask about the backward that calls them: its number, its node, the order of its nodes."""

from __future__ import annotations

import heapq
from contextvars import ContextVar
from typing import Any

from .._core import primitive as core
from .._graph.node import Node, Slot
from . import engine, graph

_multithreading: ContextVar[bool] = ContextVar("multithreading", default=True)
_layout_enforced: ContextVar[bool] = ContextVar("layout_enforced", default=True)
_view_replay: ContextVar[bool] = ContextVar("view_replay", default=False)


def is_multithreading_enabled() -> bool:
    """Tell whether torch's engine would use threads; this one runs in the thread that called it."""
    return _multithreading.get()


def set_multithreading(enabled: bool) -> None:
    """Set torch's switch."""
    _multithreading.set(enabled)


def is_layout_enforced() -> bool:
    """Tell whether a gradient takes the strides of its leaf."""
    return _layout_enforced.get()


def set_layout_enforced(enabled: bool) -> None:
    """Set torch's switch."""
    _layout_enforced.set(enabled)


def is_view_replay_enabled() -> bool:
    """Tell whether torch would replay views of a base that was written."""
    return _view_replay.get()


def set_view_replay(enabled: bool) -> None:
    """Set torch's switch."""
    _view_replay.set(enabled)


def will_engine_execute_node(node: Any) -> bool:
    """Tell whether the running backward runs a node."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if core.engine_state.task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return engine.will_reach(getattr(node, "variable", node))


def current_graph_task_id() -> int:
    """Return the number of the running backward, or -1."""
    task = core.engine_state.task
    return -1 if task is None else task.number


def current_autograd_node() -> Any:
    """Return the node that the running backward is at, or None."""
    task = core.engine_state.task
    node = None if task is None else task.node
    return node if node is None or isinstance(node, Node) else graph.get_gradient_edge(node).node


def keeps_graph() -> bool:
    """Tell whether the running backward keeps what its nodes have saved; True outside of one."""
    task = core.engine_state.task
    return True if task is None else bool(task.keep)


def current_graph_task_execution_order() -> list[Any]:
    """Return the nodes of the running backward in the order in which they run."""
    task = core.engine_state.task
    if task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if _multithreading.get():
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     "
            "torch.autograd.grad(...)\n"
        )
    waiting: dict[Any, int] = dict.fromkeys(task.counts, 0)
    for node in task.counts:
        for target in _targets(node):
            waiting[target] += 1
    ready = [(_rank(node), id(node), node) for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        node = heapq.heappop(ready)[2]
        if _runs(node, task):
            order.append(node if isinstance(node, Node) else graph.get_gradient_edge(node).node)
        for target in _targets(node):
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, (_rank(target), id(target), target))
    return order


def _targets(node: Any) -> list[Any]:
    return [edge.node if type(edge) is Slot else edge for edge in getattr(node, "_edges", ()) if edge is not None]


def _rank(node: Any) -> int:
    """Leaves come first, then the newest node."""
    return -node.seq if isinstance(node, Node) else -(1 << 62)


def _runs(node: Any, task: Any) -> bool:
    return task.capture is None or id(node) in task.needed or id(node) in task.capture.wanted
