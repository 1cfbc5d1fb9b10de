"""torch.distributed._tensor.api: the older name of the file that has DTensor."""

from ..tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
