"""torch.distributed.checkpoint.filesystem: a checkpoint in a folder, in torch's form.

`.metadata` says what there is; the values lie one behind the other in files `__<rank>_<number>.distcp`, each as `torch.save` writes it.

Note [A checkpoint is whole]
A folder has the checkpoint before or the new one, whoever dies at whatever moment:
Rule 1. Values go into new files. The first process names them, so that no file of the checkpoint before is written to.
Rule 2. `.metadata` is written last, by the first process, when every process has its files on the disk, and takes its place in one step.
        It alone says which files count; it names those of the checkpoint before until then.
Rule 3. Files that the new one does not name are removed after that. Those of processes that died are removed by the next checkpoint.
torch writes over the files that the older `.metadata` names, and removes that first.
"""

from __future__ import annotations

import io
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from ..._warnings import warn
from ...autograd.grad_mode import no_grad
from ...futures import Future
from ._described import read_described, write_described
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import _boxed
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult

METADATA, VERSION, SUFFIX = ".metadata", "1.0.0", ".distcp"
PACKAGE = __name__.partition(".")[0]


class SerializationFormat(Enum):
    """How tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


@dataclass
class _StorageInfo:
    """Where the bytes of a value are."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class _StoragePrefix:
    """How the names of a process's files begin, and the number of the first."""

    prefix: str
    first: int = 0


def _metadata_name(rank: int | None) -> str:
    return METADATA if rank is None else f"__{rank}{METADATA}"


class FileSystemWriter(StorageWriter, BlockingAsyncStager):
    """Writes a checkpoint into a folder. See Note [A checkpoint is whole]."""

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        BlockingAsyncStager.__init__(self, cache_staged_state_dict)
        if _extensions:
            raise NotImplementedError(
                "FileSystemWriter: _extensions, which transform what is written, are not implemented"
            )
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(
                f"FileSystemWriter: serialization_format={serialization_format} is not implemented\n"
                "Hint: leave it SerializationFormat.TORCH_SAVE."
            )
        self.path = Path(path)
        self.single_file_per_rank, self.sync_files, self.overwrite = single_file_per_rank, sync_files, overwrite
        self.thread_count, self.per_thread_copy_ahead = thread_count, per_thread_copy_ahead
        self.save_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True
        self._older: list[Path] = []

    def reset(self, checkpoint_id: Any = None) -> None:
        """Let a new checkpoint begin, in another folder if one is named."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learn who this process is."""
        self.rank, self.use_collectives = kwargs.get("rank"), kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder; refuse one that has a checkpoint if it must not be overwritten."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _metadata_name(None if self.use_collectives else 0)).exists():
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
            warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since self.overwrite={self.overwrite}. Past version "
                "2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to maintain this functionality or "
                "False to raise when an existing checkpoint is found."
            )
        if self.rank is not None and not self.use_collectives:
            first = self._first_free([plan], str(self.rank))
            return replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_", first))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each process names for its files."""
        if all(plan.storage_data is not None for plan in plans):
            return plans
        first = self._first_free(plans, r"\d+")
        return [
            plan if plan.storage_data is not None else replace(plan, storage_data=_StoragePrefix(f"__{rank}_", first))
            for rank, plan in enumerate(plans)
        ]

    def _first_free(self, plans: list[SavePlan], ranks: str) -> int:
        """Return the number of each process's first new file, and note the files of these processes that are there."""
        pattern = re.compile(rf"__{ranks}_(\d+){re.escape(SUFFIX)}")
        there = {path: int(found[1]) for path in self.path.iterdir() if (found := pattern.fullmatch(path.name))}
        self._older = list(there)
        needed = max(self._file_count(plan) for plan in plans)
        return 0 if min(there.values(), default=needed) >= needed else max(there.values()) + 1

    def _file_count(self, plan: SavePlan) -> int:
        return max(1, self.thread_count) if self.single_file_per_rank else max(1, len(plan.items))

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Write what a plan says, and return a Future of the results."""
        parts = [part for part in _divided(plan.items, self._file_count(plan)) if part]
        names = [f"{plan.storage_data.prefix}{plan.storage_data.first + at}{SUFFIX}" for at in range(len(parts))]
        if self.thread_count > 1:
            with ThreadPoolExecutor(self.thread_count) as threads:
                written = list(threads.map(lambda name, part: self._write_file(name, part, planner), names, parts))
        else:
            written = [self._write_file(name, part, planner) for name, part in zip(names, parts, strict=True)]
        self._sync_folder()
        done: Any = Future()
        done.set_result([one for results in written for one in results])
        return done

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        results = []
        with open(self.path / name, "wb") as file:
            for item in items:
                begin = file.tell()
                file.write(_content(planner.resolve_data(item), item).getbuffer())
                length = file.tell() - begin
                results.append(WriteResult(item.index, length, _StorageInfo(name, begin, length)))
            self._sync(file)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write what there is in all, put it in place of what was there, and remove the files of the checkpoint before."""
        metadata.version = VERSION
        metadata.storage_data = {one.index: one.storage_data for some in results for one in some}
        metadata.storage_meta = self.storage_meta()
        name = _metadata_name(None if self.use_collectives else self.rank)
        beside = self.path / f"{name}.tmp"
        with open(beside, "wb") as file:
            write_described(metadata, file)
            self._sync(file)
        os.replace(beside, self.path / name)
        self._sync_folder()
        for path in self._older:
            path.unlink(missing_ok=True)

    def _sync(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        if not self.sync_files or os.name == "nt":
            return
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def storage_meta(self) -> StorageMeta | None:
        """Return which checkpoint it is."""
        return StorageMeta(str(self.path), self.save_id)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Tell whether a name is that of a folder which is there or can be made."""
        return _is_folder(checkpoint_id)

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a state in host memory."""
        self.per_thread_copy_ahead = 0
        return super().stage(state_dict)


def _content(value: Any, item: WriteItem) -> io.BytesIO:
    if item.type is WriteItemType.BYTE_IO:
        return value  # type: ignore[no-any-return]
    content = io.BytesIO()
    import_module(f"{PACKAGE}.serialization").save(
        value.detach().cpu().clone(), content
    )  # a clone leaves out what a view shows a part of
    return content


def _divided(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """Divide items into lists of about the same size: the largest first, each to the list that has least."""
    if count == 1:
        return [items]
    lists: list[list[WriteItem]] = [[] for _ in range(count)]
    sizes = [0] * count
    for item in sorted(items, key=lambda item: -(item.tensor_storage_size() or 0)):
        least = sizes.index(min(sizes))
        lists[least].append(item)
        sizes[least] += item.tensor_storage_size() or 1
    return lists


def _is_folder(checkpoint_id: Any) -> bool:
    if isinstance(checkpoint_id, Path):
        return True
    around = Path(checkpoint_id).parents
    return "://" not in str(checkpoint_id) and any(one.exists() and os.access(one, os.W_OK) for one in around)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder."""

    def __init__(self, path: Any, _extension_registry: Any = None) -> None:
        self.path = Path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: Any = None) -> None:
        """Let a new reading begin, in another folder if one is named."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Read what there is: of all processes, or of one that has written for itself."""
        with open(self.path / _metadata_name(kwargs.get("rank")), "rb") as file:
            found = read_described(file)
        if getattr(found, "storage_meta", None) is None:
            found.storage_meta = StorageMeta()
        found.storage_meta.load_id = self.load_id  # type: ignore[union-attr]
        return found

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learn what there is, and who this process is."""
        if metadata.storage_data is None:
            raise AssertionError("storage_data must not be None in metadata")
        self.storage_data = metadata.storage_data
        self.rank, self.use_collectives = kwargs.get("rank"), kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Leave a plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Leave plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read what a plan says, file by file in the order in which it lies there."""
        load = import_module(f"{PACKAGE}.serialization").load
        with no_grad():
            for item, content in self._contents(plan):
                if item.type is LoadItemType.BYTE_IO:
                    planner.load_bytes(item, content)
                    continue
                stored = load(content, map_location="cpu", weights_only=True)
                box = _boxed(stored, item.storage_offsets, item.lengths)
                target = planner.resolve_tensor(item).detach()
                if target.shape != box.shape:
                    raise AssertionError(f"req {item.storage_index} mismatch sizes {target.shape} vs {box.shape}")
                target.copy_(box)
                planner.commit_tensor(item, target)
        done: Any = Future()
        done.set_result(None)
        return done

    def _contents(self, plan: LoadPlan) -> Iterator[tuple[Any, io.BytesIO]]:
        places = [(self.storage_data[item.storage_index], item) for item in plan.items]
        for info, item in sorted(places, key=lambda one: (one[0].relative_path, one[0].offset)):
            if getattr(info, "transform_descriptors", None):
                raise NotImplementedError(f"checkpoints whose values are transformed by {info.transform_descriptors}")
            with open(self.path / info.relative_path, "rb") as file:
                file.seek(info.offset)
                yield item, io.BytesIO(file.read(info.length))

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Tell whether a name is that of a folder which is there or can be made."""
        return _is_folder(checkpoint_id)


__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]
