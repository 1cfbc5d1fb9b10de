"""The few names of torch's C++ module that programs call."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retrograd._absent import finder as _finder
from retrograd._core.levels import UserLevel
from retrograd._device import device, get_default_device
from retrograd._dtypes import dtype
from retrograd._modes import current_mode, using
from retrograd._modes import current_mode as _current_mode
from retrograd._ops.matrices import LinAlgError as _LinAlgError
from retrograd.accelerator import current_accelerator
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
from retrograd.autograd.grad_mode import is_grad_enabled
from retrograd.ops import Tag as Tag
from retrograd.tensor import Tensor as TensorBase
from retrograd.tensor._base import TensorMeta as _TensorMeta
from retrograd.tensor._base import disabled_torch_dispatch as _disabled_torch_dispatch_impl
from retrograd.tensor._base import disabled_torch_function as _disabled_torch_function_impl
from retrograd.tensor._functions.generators import Generator

PACKAGE = __name__.partition(".")[0]
_absent = _finder("torch._C")


def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    if name in ("_autograd", "_functions", "_functorch", "_nn"):
        return import_module(f"{__name__}.{name}")
    if name in ("DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"):
        return getattr(import_module(f"{__name__}._dispatch_keys"), name)
    if name in ("_get_graph_exec_group", "_set_graph_exec_group"):
        return getattr(import_module(f"{PACKAGE}.utils.checkpoint"), name)
    return _absent(name)


def _are_functorch_transforms_active() -> bool:
    """Tell whether a function is being transformed: by `vmap`, `grad`, `jvp` or another."""
    return any(not isinstance(one.level, UserLevel) for one in current_mode().transforms)


def _get_accelerator(check: bool | None = None) -> device:
    """Return the kind of device that computes fastest here."""
    return current_accelerator() or device("cpu")


def _get_default_device() -> str:
    """Return the kind of device on which new tensors lie."""
    return str(get_default_device().type)


def _get_tracing_state() -> Any:
    """Return the trace that `jit.trace` is recording, if one is."""
    from retrograd.jit._marks import is_tracing, recordings

    return recordings[-1] if is_tracing() else None


class DisableTorchFunctionSubclass(using):
    """Run a block in which subclasses do not take calls over."""

    def __init__(self) -> None:
        super().__init__(torch_function=False)


class DisableTorchFunction(using):
    """Run a block in which neither subclasses nor modes take calls over."""

    def __init__(self) -> None:
        super().__init__(torch_function=False, function_modes=())


# ---- questions, answered as things are here ----
def _no(*args: Any) -> bool:
    """Answer that it is not so: nothing is traced or fused, and there is no such device."""
    return False


def _is_tracing() -> bool:
    """Tell whether `jit.trace` is recording."""
    return _get_tracing_state() is not None


_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _no
_has_xpu = _has_mps = False


def _keep_off(enabled: Any = None) -> bool:
    """Accept a switch of torch's fusers, which are not here, and return that it was off."""
    return False


_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_nvfuser_enabled = _keep_off
_jit_set_nvfuser_guard_mode = _jit_set_profiling_executor = _jit_set_profiling_mode = _keep_off
_jit_set_texpr_fuser_enabled = _set_math_sdp_allow_fp16_bf16_reduction = _keep_off


def _get_cudnn_enabled() -> bool:
    """Return the switch of cuDNN."""
    return bool(import_module(f"{PACKAGE}.backends.cudnn").enabled)


def _get_privateuse1_backend_name() -> str:
    """Return the name of the kind of device that programs may add: nobody has."""
    return "privateuseone"


def _is_torch_function_mode_enabled() -> bool:
    """Tell whether a mode watches the functions."""
    return bool(_current_mode().function_modes)


def _is_alias_of(one: Any, other: Any) -> bool:
    """Tell whether two tensors share memory."""
    return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


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
    "DisableTorchFunctionSubclass",
    "Generator",
    "TensorBase",
    "_LinAlgError",
    "_TensorMeta",
    "_VariableFunctions",
    "_VariableFunctionsClass",
    "_are_functorch_transforms_active",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_get_accelerator",
    "_get_default_device",
    "_get_tracing_state",
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
    "dtype",
    "is_grad_enabled",
]
