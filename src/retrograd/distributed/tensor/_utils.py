"""torch.distributed.tensor._utils: which part of a tensor a process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor._object.layout import dense_strides
from .placement_types import Placement, Shard


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of this process's part, and where it begins in each dimension.

    Args:
        global_shape: the shape of the whole
        mesh: the mesh on which it lies
        placements: how it lies along each of the mesh's dimensions
        skip_offset: return no beginnings
    """
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,) * len(global_shape), () if skip_offset else (0,) * len(global_shape)
    shape, begins = part_of(global_shape, mesh.shape, placements, coordinate)
    return shape, () if skip_offset else begins


def part_of(
    global_shape: Sequence[int], mesh_shape: Sequence[int], placements: Sequence[Placement], coordinate: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of the part of the process at a place in the mesh, and where it begins."""
    shape, begins = list(global_shape), [0] * len(global_shape)
    for placement, length, at in zip(placements, mesh_shape, coordinate, strict=True):
        if isinstance(placement, Shard):
            dim = placement.dim
            shape[dim], begin = placement.local_shard_size_and_offset(shape[dim], length, at)
            begins[dim] += begin
    return tuple(shape), tuple(begins)


def compute_local_shape(global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement]) -> tuple[int, ...]:
    """Return the shape of this process's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(
    tensor: Any, mesh: Any, placements: Sequence[Placement]
) -> tuple[list[int], tuple[int, ...]]:
    """Return the shape and the strides of a whole of which every process has a part of the same shape as this one's."""
    shape = list(tensor.shape)
    for at, placement in enumerate(placements):
        if isinstance(placement, Shard):
            if placement.dim >= tensor.ndim:
                raise RuntimeError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {tensor.ndim} for placement number {at}"
                )
            shape[placement.dim] *= mesh.size(at)
    return shape, dense_strides(tuple(shape))


__all__ = ["compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset"]
