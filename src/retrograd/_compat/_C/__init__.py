"""The few names of torch's C++ module that programs call."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retrograd._absent import finder
from retrograd._core.levels import UserLevel
from retrograd._device import device, get_default_device
from retrograd._modes import current_mode, using
from retrograd.accelerator import current_accelerator

PACKAGE = __name__.partition(".")[0]
__getattr__ = finder("torch._C", modules="_autograd _functions _functorch _nn")  # few programs use them


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
    return bool(current_mode().function_modes)


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
