"""`autocast`: accepted where it is switched off, refused where it would change the dtype of results."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._device import device as _device_type
from .._dtypes import ALL_DTYPES, dtype
from ..cuda import is_available as _has_cuda

_BY_NAME: dict[str, dtype] = {each.name: each for each in ALL_DTYPES}
_LOWER = {"cpu": ("bfloat16", "float16"), "cuda": ("float16", "bfloat16")}  # the first is what torch takes by itself


class autocast:  # noqa: N801 - torch's name
    """A block, or a decorated function, in which torch computes products in a smaller dtype.

    Here it can be written with `enabled=False`, and it is switched off where torch does so, too (no CUDA device, a dtype
    torch does not cast to). Switched on it raises: results would have another dtype than torch's.
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _device_type(device_type).type
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._enabled = bool(enabled) and self._torch_would_cast()
        if self._enabled:
            raise NotImplementedError(
                f"autocast(device_type={device_type!r}, dtype={self.fast_dtype}): retrograd does not cast by itself. Write "
                "enabled=False to compute in float32, or make the model smaller yourself: model.to(torch.bfloat16)"
            )

    def _torch_would_cast(self) -> bool:
        if self.device == "cuda" and not _has_cuda():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return False
        if self.device in _LOWER and self.fast_dtype.name not in _LOWER[self.device]:
            name = "CPU" if self.device == "cpu" else "CUDA"
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            return func(*args, **kwargs)

        return decorated


def is_autocast_available(device_type: str) -> bool:
    """Tell whether torch could cast on a device of this type."""
    return _device_type(device_type).type in _LOWER


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Tell whether autocast is on: never."""
    return False


def is_autocast_cache_enabled() -> bool:
    """Tell whether autocast would keep what it has cast."""
    return True


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype that torch's autocast takes on a device by itself."""
    kind = _device_type(device_type).type
    if kind not in _LOWER:
        raise RuntimeError(f"unsupported scalarType: retrograd has no autocast for the device type {kind!r}")
    return _BY_NAME[_LOWER[kind][0]]


def clear_autocast_cache() -> None:
    """Do nothing: nothing has been cast."""


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Mark the forward of a Function; `cast_inputs` counts under autocast only, which is never on."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = False
        return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Mark the backward of a Function whose forward is marked; it is called as it stands."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    return bwd
