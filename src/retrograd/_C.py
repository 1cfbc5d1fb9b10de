"""The few names of torch's C++ module that programs call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .autograd._running import current_autograd_node as _current_autograd_node
from .autograd._running import current_graph_task_execution_order as _current_graph_task_execution_order
from .autograd._running import current_graph_task_id as _current_graph_task_id
from .autograd._running import is_layout_enforced as _is_grad_layout_enforcement_enabled
from .autograd._running import is_multithreading_enabled as _is_multithreading_enabled
from .autograd._running import is_view_replay_enabled as _is_view_replay_enabled
from .autograd._running import set_layout_enforced as _set_grad_layout_enforcement_enabled
from .autograd._running import set_multithreading as _set_multithreading_enabled
from .autograd._running import set_view_replay as _set_view_replay_enabled
from .autograd._running import will_engine_execute_node as _will_engine_execute_node
from .autograd.forward_ad import _is_fwd_grad_enabled
from .tensor._base import storage_of


def _unsafe_set_version_counter(tensors: tuple[Any, ...], versions: tuple[int, ...]) -> None:
    """Set the versions of tensors, which hides writes from the check of saved values."""
    for tensor, version in zip(tensors, versions, strict=True):
        storage_of(tensor).version = version


_autograd = SimpleNamespace(_unsafe_set_version_counter=_unsafe_set_version_counter)


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nobody counts which parts are used."""


__all__ = [
    "_autograd",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_is_fwd_grad_enabled",
    "_is_grad_layout_enforcement_enabled",
    "_is_multithreading_enabled",
    "_is_view_replay_enabled",
    "_log_api_usage_once",
    "_set_grad_layout_enforcement_enabled",
    "_set_multithreading_enabled",
    "_set_view_replay_enabled",
    "_will_engine_execute_node",
]
