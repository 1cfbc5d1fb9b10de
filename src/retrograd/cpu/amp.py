"""torch.cpu.amp: older names of `torch.amp`, with the device filled in. torch calls them deprecated."""

from __future__ import annotations

from .. import amp as _amp
from .._dtypes import bfloat16
from .._dtypes import dtype as _dtype_type
from ..amp._older import OlderGradScaler, deprecated


class autocast(_amp.autocast):  # noqa: N801 - torch's name
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype_type = bfloat16, cache_enabled: bool = True) -> None:
        deprecated("cpu", "autocast", "autocast('cpu', args...)")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(OlderGradScaler):
    """`torch.amp.GradScaler("cpu", ...)`."""

    _home = "cpu"


__path__: list[str] = []  # so that names that stand elsewhere can be imported from below

__all__ = ["GradScaler", "autocast"]
