"""`autocast`: products and convolutions in a smaller dtype, losses in float32. `tensor/_recording/autocast.py` has the tables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .._device import device as _device_type
from .._dtypes import ALL_DTYPES, dtype
from .._modes import Block, Entry, Mode, change_mode, current_mode, push, unique, write
from .._tracebacks import guard_methods, hide
from .._warnings import warn
from ..cuda import is_available as _has_cuda
from ..overrides import hold
from ..tensor._base import told_of_changes
from ..tensor._tensor import Tensor

_BY_NAME: dict[str, dtype] = {each.name: each for each in ALL_DTYPES}
_LOWER = {"cpu": ("bfloat16", "float16"), "cuda": ("float16", "bfloat16")}
_taken = {
    kind: _BY_NAME[names[0]] for kind, names in _LOWER.items()
}  # by itself, until `set_autocast_dtype` says another
_nesting, _keeps = 0, True
_holds: dict[int, Any] = {}  # of threads in which it was switched on for good


class autocast(Block):  # noqa: N801 - torch's name
    """A block, or a decorated function, in which products are computed in a smaller dtype.

    Linear layers, matrix products, convolutions and attention take their floats in that dtype; losses take theirs in float32. It is
    switched off where torch does so, too: no CUDA device, a dtype that torch does not cast to. What was cast is not kept, whatever
    `cache_enabled` says.

    Args:
        device_type: "cpu" or "cuda"
        dtype: the smaller dtype; bfloat16 on the CPU, float16 on CUDA if it is not given
        enabled: False switches casting off
        cache_enabled: for torch's sake

    Example:
        >>> with torch.autocast("cpu"):
        ...     out = torch.ones(2, 2) @ torch.ones(2, 2)
        >>> out.dtype
        torch.bfloat16
    """

    _block_fields = ("autocast",)

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _device_type(device_type).type
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._enabled = bool(enabled) and self._torch_would_cast()

    def _torch_would_cast(self) -> bool:
        if self.device == "cuda" and not _has_cuda():
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            return False
        if self.device in _LOWER and getattr(self.fast_dtype, "name", None) not in _LOWER[self.device]:
            name = "CPU" if self.device == "cpu" else "CUDA"
            warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            return False
        return True

    def __enter__(self) -> autocast:
        now = (self.device, self.fast_dtype) if self._enabled else None
        before = current_mode()
        entered = unique(before._replace(autocast=now))
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]
        return self

    def _block_entry(self, before: Mode, entered: Mode) -> Entry:
        entry = super()._block_entry(before, entered)
        entry.holds = None if entered.autocast is None else hold()
        return entry

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function run in a block of autocast."""

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


def is_autocast_available(device_type: str) -> bool:
    """Tell whether torch could cast on a device of this type."""
    return _device_type(device_type).type in _LOWER


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Tell whether autocast is on, by default for CUDA.

    Args:
        device_type: "cpu" or "cuda"

    Example:
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    if device_type is not None and not isinstance(device_type, str):
        wrong = type(device_type).__name__
        raise TypeError(f"is_autocast_enabled(): argument 'device_type' (position 1) must be str, not {wrong}")
    on, asked = current_mode().autocast, "cuda" if device_type is None else _device_type(device_type).type
    return on is not None and on[0] == asked


def is_autocast_cpu_enabled() -> bool:
    """Tell whether autocast is on for CPUs."""
    return is_autocast_enabled("cpu")


def is_autocast_cache_enabled() -> bool:
    """Tell whether autocast would keep what it has cast, as the program wishes."""
    return _keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Accept the wish: what was cast is not kept."""
    global _keeps
    _keeps = enabled


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off for good: for a type of device, by default CUDA."""
    kind, on = ("cuda", bool(device_type)) if enabled is None else (_device_type(device_type).type, enabled)
    if on:
        _holds[get_ident()] = hold()
        change_mode(autocast=(kind, get_autocast_dtype(kind)))
    elif is_autocast_enabled(kind):
        change_mode(autocast=None)
        _holds.pop(get_ident(), None)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off for CPUs."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Say which dtype autocast takes on a type of device."""
    try:
        kind = _device_type(device_type).type
        _taken[kind] = dtype
        for told in told_of_changes:
            told()
        if is_autocast_enabled(kind):
            change_mode(autocast=(kind, dtype))
    except Exception as error:
        hide(error)
        raise


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Say which dtype autocast takes on CPUs."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Say which dtype autocast takes on CUDA devices."""
    set_autocast_dtype("cuda", dtype)


def autocast_increment_nesting() -> int:
    """Count one block more, and return how many there are."""
    global _nesting
    _nesting += 1
    return _nesting


def autocast_decrement_nesting() -> int:
    """Count one block less, and return how many there are."""
    global _nesting
    _nesting -= 1
    return _nesting


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype that autocast takes on a type of device."""
    try:
        kind = _device_type(device_type).type
        if kind not in _LOWER:
            raise RuntimeError(f"unsupported scalarType: retrograd has no autocast for the device type {kind!r}")
        on = current_mode().autocast
        return on[1] if on is not None and on[0] == kind else _taken[kind]
    except Exception as error:
        hide(error)
        raise


def get_autocast_cpu_dtype() -> dtype:
    """Return the dtype that autocast takes on CPUs."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """Return the dtype that autocast takes on CUDA devices."""
    return get_autocast_dtype("cuda")


def clear_autocast_cache() -> None:
    """Do nothing: what was cast is not kept."""


def _cast(value: Any, device: str, wanted: dtype) -> Any:
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device and value.dtype.name != "float64"
        return value.to(wanted) if fits else value
    if isinstance(value, dict):
        return {key: _cast(one, device, wanted) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(one, device, wanted) for one in value])
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Mark the forward of a Function; under autocast, with `cast_inputs`, it runs in that dtype and without autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = _cast(args, device_type, cast_inputs), _cast(kwargs, device_type, cast_inputs)
            return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Mark the backward of a Function whose forward is marked; it runs under autocast if the forward did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward


guard_methods(autocast, "__init__")
