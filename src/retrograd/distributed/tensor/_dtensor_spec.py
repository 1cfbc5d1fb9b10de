"""torch.distributed.tensor._dtensor_spec: where a tensor lies, as torch's private file has it."""

from .placement_types import DTensorSpec, TensorMeta

__all__ = ["DTensorSpec", "TensorMeta"]
