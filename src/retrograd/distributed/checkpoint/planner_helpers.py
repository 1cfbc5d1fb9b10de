"""torch.distributed.checkpoint.planner_helpers: what is written of a value, and which stored parts fill it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..._size import Size
from ...tensor import Tensor
from ..tensor import DTensor
from ..tensor._utils import compute_local_shape_and_global_offset
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType


def _create_chunk_list(tensor: Any) -> list[ChunkStorageMetadata]:
    """Return the parts of a tensor that this process has."""
    if isinstance(tensor, DTensor):
        sizes, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
        return [ChunkStorageMetadata(Size(offsets), Size(sizes))]
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] ,but got {type(tensor)}")
    return [ChunkStorageMetadata(Size([0] * tensor.ndim), tensor.shape)]


def _create_write_items(fqn: str, value: Any) -> list[WriteItem]:
    """Return what this process could write of a value."""
    if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
        return []  # this process is not on its mesh
    if not isinstance(value, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    is_part = isinstance(value, DTensor)
    properties = TensorProperties.create_from_tensor(value.to_local() if isinstance(value, DTensor) else value)
    return [
        WriteItem(
            MetadataIndex(fqn, chunk.offsets),
            WriteItemType.SHARD if is_part else WriteItemType.TENSOR,
            tensor_data=TensorWriteData(chunk, properties, value.shape),
        )
        for chunk in _create_chunk_list(value)
        if prod(chunk.sizes) or not value.numel()  # processes at the end may have nothing of a tensor
    ]


def _create_read_items(fqn: str, metadata: Any, value: Any) -> list[ReadItem]:
    """Return what this process reads for a value."""
    if isinstance(metadata, BytesStorageMetadata):
        nowhere, index = Size([0]), MetadataIndex(fqn)
        return [ReadItem(LoadItemType.BYTE_IO, index, nowhere, index, nowhere, nowhere)]
    if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
        return []
    try:
        chunks = _create_chunk_list(value)
    except ValueError as error:
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(metadata)}"
        ) from error
    return create_read_items_for_chunk_list(fqn, metadata, chunks)


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """Return the boxes that stored parts and this process's parts of a tensor have in common."""
    items = []
    for at, mine in enumerate(local_chunks):
        for stored_at, stored in enumerate(checkpoint_md.chunks):
            begins, ends = _common_box(mine, stored)
            if any(begin >= end for begin, end in zip(begins, ends, strict=True)):
                continue
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, mine.offsets, at),
                    _less(begins, mine.offsets),
                    MetadataIndex(fqn, stored.offsets, stored_at),
                    _less(begins, stored.offsets),
                    _less(ends, begins),
                )
            )
    return items


def _common_box(one: ChunkStorageMetadata, other: ChunkStorageMetadata) -> tuple[list[int], list[int]]:
    """Return where the box that two parts have in common begins and ends; it has nothing in it where it ends before it begins."""
    begins = [max(pair) for pair in zip(one.offsets, other.offsets, strict=True)]
    ends = [min(pair) for pair in zip(_ends(one), _ends(other), strict=True)]
    return begins, ends


def _ends(chunk: ChunkStorageMetadata) -> list[int]:
    return [begin + size for begin, size in zip(chunk.offsets, chunk.sizes, strict=True)]


def _less(some: Sequence[int], others: Sequence[int]) -> Size:
    return Size([one - other for one, other in zip(some, others, strict=True)])


def _overlapping(chunks: list[ChunkStorageMetadata]) -> list[tuple[ChunkStorageMetadata, ChunkStorageMetadata]]:
    """Return the pairs of parts that have elements in common, which an honest division of a tensor has not."""
    if not chunks or not len(chunks[0].offsets):
        return []
    axis = max(range(len(chunks[0].offsets)), key=lambda axis: max(_ends(chunk)[axis] for chunk in chunks))
    found = []
    reaching: list[ChunkStorageMetadata] = []  # the parts before that end behind where this one begins
    for chunk in sorted(chunks, key=lambda chunk: chunk.offsets[axis]):
        reaching = [one for one in reaching if _ends(one)[axis] > chunk.offsets[axis]]
        for one in reaching:
            begins, ends = _common_box(chunk, one)
            if all(begin < end for begin, end in zip(begins, ends, strict=True)):
                found.append((chunk, one))
        reaching.append(chunk)
    return found


def _part_of(state: dict[str, Any], index: MetadataIndex) -> Any:
    """Return the value that an index names, or this process's part of it."""
    if index.fqn not in state:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state[index.fqn]
    if isinstance(value, DTensor):
        return value.to_local()
    begin = Size([0] * value.ndim) if isinstance(value, Tensor) else None
    if index.offset is not None and index.offset != begin:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return value


def _boxed(tensor: Any, offsets: Sequence[int], lengths: Sequence[int]) -> Any:
    """Return a view of a box of a tensor."""
    return tensor[tuple(slice(at, at + size) for at, size in zip(offsets, lengths, strict=True))]


__all__ = ["create_read_items_for_chunk_list"]
