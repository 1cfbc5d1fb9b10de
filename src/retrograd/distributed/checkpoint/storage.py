"""torch.distributed.checkpoint.storage: the interface of what keeps checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..._public import set_all
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner


@dataclass(frozen=True)
class WriteResult:
    """What was written of a value, and where it lies."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Writes the plans of all processes. Each writes its own; the first one finishes the checkpoint."""

    @abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Let a new checkpoint begin, elsewhere if one is named."""

    @abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learn who this process is."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Add to a plan what this process knows about the place."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Add to all plans what they need to keep out of each other's way."""

    @abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Write what a plan says, and return a Future of the results."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write what there is in all, and so make the checkpoint valid."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Tell whether a checkpoint of this name can be kept here."""

    def storage_meta(self) -> StorageMeta | None:
        """Return which checkpoint it is."""
        return None


class StorageReader(ABC):
    """Reads the plans of all processes, each its own."""

    @abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Let a new reading begin, elsewhere if another checkpoint is named."""

    @abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return what there is."""

    @abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learn what there is, and who this process is."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Add to a plan what this process knows about the place."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Add to all plans what they need."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read what a plan says, hand it to the planner, and return a Future."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Tell whether a checkpoint of this name can be read from here."""


set_all(globals())
