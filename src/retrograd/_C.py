"""The few names of torch's C++ module that programs call."""

from __future__ import annotations

from .autograd._running import current_autograd_node as _current_autograd_node
from .autograd._running import current_graph_task_execution_order as _current_graph_task_execution_order
from .autograd._running import current_graph_task_id as _current_graph_task_id
from .autograd._running import is_layout_enforced as _is_grad_layout_enforcement_enabled
from .autograd._running import is_multithreading_enabled as _is_multithreading_enabled
from .autograd._running import set_layout_enforced as _set_grad_layout_enforcement_enabled
from .autograd._running import set_multithreading as _set_multithreading_enabled


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nobody counts which parts are used."""


__all__ = [
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_is_grad_layout_enforcement_enabled",
    "_is_multithreading_enabled",
    "_log_api_usage_once",
    "_set_grad_layout_enforcement_enabled",
    "_set_multithreading_enabled",
]
