"""torch.distributed.tensor._utils: which part of a tensor a process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .placement_types import Placement, Shard


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of this process's part, and where it begins in each dimension."""
    shape, begins = list(global_shape), [0] * len(global_shape)
    for at, placement in enumerate(placements):
        if isinstance(placement, Shard):
            rank = mesh.get_local_rank(at)
            shape[placement.dim], begin = placement.local_shard_size_and_offset(
                shape[placement.dim], mesh.size(at), rank
            )
            begins[placement.dim] += begin
    return tuple(shape), tuple(begins)


def compute_local_shape(global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement]) -> tuple[int, ...]:
    """Return the shape of this process's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


__all__ = ["compute_local_shape", "compute_local_shape_and_global_offset"]
