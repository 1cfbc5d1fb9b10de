"""torch.distributed.fsdp._traversal_utils: the wrapped modules inside a module."""

from __future__ import annotations

from typing import Any

from .fully_sharded_data_parallel import FullyShardedDataParallel


def _get_fsdp_states(module: Any) -> list[Any]:
    """Return the wrapped modules inside a module."""
    return FullyShardedDataParallel.fsdp_modules(module)


__all__ = ["_get_fsdp_states"]
