"""torch.distributed.tensor: tensors that lie on a mesh of processes."""

from __future__ import annotations

import importlib
from typing import Any

from ...serialization import add_safe_globals
from ..device_mesh import DeviceMesh, _read_mesh, init_device_mesh
from ._dtensor import DTensor, _read, distribute_module, distribute_tensor, making
from .placement_types import Partial, Placement, Replicate, Shard

_torch: Any = importlib.import_module(__package__.partition(".")[0])
empty, full, ones, rand, randn, zeros = (
    making(getattr(_torch, name)) for name in ("empty", "full", "ones", "rand", "randn", "zeros")
)

add_safe_globals(
    [DTensor, Partial, Replicate, Shard, _read, _read_mesh]
)  # torch.load reads saved parts, as torch's does

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
