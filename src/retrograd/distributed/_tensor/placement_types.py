"""torch.distributed._tensor.placement_types: the older name of `distributed.tensor.placement_types`."""

from ..tensor.placement_types import DTensorSpec, Partial, Placement, Replicate, Shard, TensorMeta

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta"]
