"""torch.distributed.checkpoint.planner: plans of what is written and read, and the interface of what makes them."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from ..._public import set_all
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties


class WriteItemType(Enum):
    """What is written: a whole tensor, a part of one, or another value."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: of a tensor, or another value."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes a value takes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor, which may be all of it."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Any


@dataclass(frozen=True)
class WriteItem:
    """One thing that a process writes."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the bytes of the whole tensor, as torch counts them; None for other values."""
        if self.tensor_data is None:
            return None
        return int(prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """One thing that a process reads: a box of what is stored, and the box that it fills."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Any
    storage_index: MetadataIndex
    storage_offsets: Any
    lengths: Any


@dataclass(frozen=True)
class SavePlan:
    """What a process writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Says what each process writes. All processes plan, the first one brings their plans together."""

    @abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state that is to be written."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return what this process could write."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return what each process does write, and what there is in all."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take the plan that the first process has made for this one."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """Return the tensor, or the bytes, of what is written."""


class LoadPlanner:
    """Says what each process reads, and takes what it reads."""

    @abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state that is to be read into."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return what this process reads."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return what each process reads, after the first has seen all plans."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take the plan that the first process has made for this one."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take a value that is no tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Return where the bytes of a value go."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """Return the tensor, or the part of one, that is filled."""

    @abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Take note that a tensor is filled."""


set_all(globals())
