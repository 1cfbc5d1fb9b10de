"""torch.distributed.fsdp.sharded_grad_scaler: the scaler whose processes agree on whether gradients are finite. There is one."""

from __future__ import annotations

from typing import Any

from ..._absent import finder
from ...amp.grad_scaler import GradScaler


class ShardedGradScaler(GradScaler):
    """Scales losses, as `torch.amp.GradScaler` does."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = process_group


__getattr__ = finder("torch.distributed.fsdp.sharded_grad_scaler")

__all__ = ["ShardedGradScaler"]
