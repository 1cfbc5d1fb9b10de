"""What `torch.cuda.amp` and `torch.cpu.amp` share: older names of `torch.amp`, with the device filled in."""

from __future__ import annotations

from .._warnings import warn
from .grad_scaler import GradScaler


def deprecated(device: str, old: str, new: str) -> None:
    """Warn, as torch, that an older name has a newer one."""
    warn(f"`torch.{device}.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning)


class OlderGradScaler(GradScaler):
    """`torch.amp.GradScaler(device, ...)`."""

    _home = ""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        deprecated(self._home, "GradScaler", f"GradScaler('{self._home}', args...)")
        super().__init__(self._home, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
