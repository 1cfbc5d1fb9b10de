"""torch.distributed.tensor: tensors that lie on a mesh of processes."""

from __future__ import annotations

import importlib
from typing import Any

from ..device_mesh import DeviceMesh, init_device_mesh
from ._dtensor import DTensor, distribute_module, distribute_tensor, making
from .placement_types import Partial, Placement, Replicate, Shard

_torch: Any = importlib.import_module(__package__.partition(".")[0])
empty, full, ones, rand, randn, zeros = (
    making(getattr(_torch, name)) for name in ("empty", "full", "ones", "rand", "randn", "zeros")
)

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]
