"""torch.distributed._composable: older homes of `fully_shard`."""

from ..fsdp import fully_shard

__all__ = ["fully_shard"]
