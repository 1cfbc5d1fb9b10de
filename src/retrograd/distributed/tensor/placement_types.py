"""torch.distributed.tensor.placement_types: how a tensor lies on the processes of one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...tensor._functions.joining import cat


class Placement:
    """How a tensor lies on the processes along a dimension."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along a dimension if one is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dimension."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """Return the length of a process's part, and where it begins."""
        full = -(-curr_local_size // num_chunks)
        begin = min(full * rank, curr_local_size)
        return min(full, curr_local_size - begin), begin

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _split_tensor(
        self, tensor: Any, num_chunks: int, *, with_padding: bool = True, contiguous: bool = True
    ) -> tuple[list[Any], list[int]]:
        """Cut a tensor into the parts of processes; the last ones may be shorter, and are padded if asked."""
        sizes = [self.local_shard_size_and_offset(tensor.size(self.dim), num_chunks, at)[0] for at in range(num_chunks)]
        parts = list(tensor.split(sizes, self.dim))
        pads = [sizes[0] - size for size in sizes]
        if with_padding:
            parts = [_padded(part, self.dim, pad) for part, pad in zip(parts, pads, strict=True)]
        return [part.contiguous() for part in parts] if contiguous else parts, pads

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


def _padded(part: Any, dim: int, pad: int) -> Any:
    if pad == 0:
        return part
    shape = list(part.shape)
    shape[dim] = pad
    return cat((part, part.new_zeros(shape)), dim)


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """Each process has several parts along a dimension, as where a part is divided again."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a summand, or what else is to be reduced."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class TensorMeta:
    """What a distributed tensor is as a whole."""

    shape: Any
    stride: tuple[int, ...]
    dtype: Any


@dataclass
class DTensorSpec:
    """Where a tensor lies."""

    mesh: Any
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None = None

    @property
    def device_mesh(self) -> Any:
        """Return the mesh by its other name."""
        return self.mesh

    @property
    def shape(self) -> Any:
        """Return the shape of the whole."""
        return None if self.tensor_meta is None else self.tensor_meta.shape


__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta", "_StridedShard"]
