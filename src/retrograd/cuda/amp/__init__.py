"""torch.cuda.amp: older names of `torch.amp`, with the device filled in. torch calls them deprecated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import amp as _amp
from ..._dtypes import dtype as _dtype_type
from ..._dtypes import float16
from ...amp._older import OlderGradScaler, deprecated
from .. import is_available


class autocast(_amp.autocast):  # noqa: N801 - torch's name
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype_type = float16, cache_enabled: bool = True) -> None:
        deprecated("cuda", "autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(OlderGradScaler):
    """`torch.amp.GradScaler("cuda", ...)`.

    Args:
        init_scale: the first factor
        growth_factor: by how much it grows after many good steps
        backoff_factor: by how much it shrinks after a bad one
        growth_interval: how many good steps that is
        enabled: False makes it do nothing

    Example:
        >>> torch.cuda.amp.GradScaler(enabled=False).get_scale()
        1.0
    """

    _home = "cuda"


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: _dtype_type | None = None) -> Callable[..., Any]:
    """`torch.amp.custom_fwd(device_type="cuda", ...)`."""
    deprecated("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(_amp.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.amp.custom_bwd(device_type="cuda", ...)`."""
    deprecated("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _amp.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Tell whether there is no CUDA device."""
    return not is_available()


__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
