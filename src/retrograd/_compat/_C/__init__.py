"""The few names of torch's C++ module that programs call."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retrograd._ops.matrices import LinAlgError as _LinAlgError
from retrograd.autograd._running import current_autograd_node as _current_autograd_node
from retrograd.autograd._running import current_graph_task_execution_order as _current_graph_task_execution_order
from retrograd.autograd._running import current_graph_task_id as _current_graph_task_id
from retrograd.autograd._running import is_layout_enforced as _is_grad_layout_enforcement_enabled
from retrograd.autograd._running import is_multithreading_enabled as _is_multithreading_enabled
from retrograd.autograd._running import is_view_replay_enabled as _is_view_replay_enabled
from retrograd.autograd._running import set_layout_enforced as _set_grad_layout_enforcement_enabled
from retrograd.autograd._running import set_multithreading as _set_multithreading_enabled
from retrograd.autograd._running import set_view_replay as _set_view_replay_enabled
from retrograd.autograd._running import will_engine_execute_node as _will_engine_execute_node
from retrograd.autograd.forward_ad import _is_fwd_grad_enabled
from retrograd.autograd.forward_ad import set_enabled as _set_fwd_grad_enabled
from retrograd.tensor import Tensor as TensorBase
from retrograd.tensor._generators import Generator

PACKAGE = __name__.partition(".")[0]


def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    if name in ("_autograd", "_functions"):
        return import_module(f"{__name__}.{name}")
    if name in ("_get_graph_exec_group", "_set_graph_exec_group"):
        return getattr(import_module(f"{PACKAGE}.utils.checkpoint"), name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nobody counts which parts are used."""


# ---- where torch's pickles look for functions that are written in C++ ----
def public_names(home: str, prefix: str = "", **others: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that has what a public module has, under a prefix or other names."""

    def find(name: str) -> Any:
        if name.startswith("__") or not name.startswith(prefix):
            raise AttributeError(f"module 'torch._C' has no attribute '{name}'")
        return getattr(import_module(f"{PACKAGE}{home}"), others.get(name, name.removeprefix(prefix)))

    return find


class _Functions(type):
    def __getattr__(cls, name: str) -> Any:
        return public_names("")(name)


class _VariableFunctionsClass(metaclass=_Functions):
    """Has the functions of the package."""


_VariableFunctions = _VariableFunctionsClass


__all__ = [
    "Generator",
    "TensorBase",
    "_LinAlgError",
    "_VariableFunctions",
    "_VariableFunctionsClass",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_is_fwd_grad_enabled",
    "_is_grad_layout_enforcement_enabled",
    "_is_multithreading_enabled",
    "_is_view_replay_enabled",
    "_log_api_usage_once",
    "_set_fwd_grad_enabled",
    "_set_grad_layout_enforcement_enabled",
    "_set_multithreading_enabled",
    "_set_view_replay_enabled",
    "_will_engine_execute_node",
]
