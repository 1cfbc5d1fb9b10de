"""torch.utils.data.backward_compatibility: what older programs call in workers."""

from __future__ import annotations

from ..._warnings import warn


def worker_init_fn(worker_id: int) -> None:
    """Do nothing: streams are shared when they are sent to workers."""
    warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically applies sharding in every worker"
    )
