"""torch.distributed.checkpoint.filesystem: a checkpoint in a folder, in torch's form.

`.metadata` says what there is; the values lie one behind the other in `__0_0.distcp`, each as `torch.save` writes it. Our classes are
written by their names in torch, so that torch and retrograd read each other's folders. A checkpoint is complete or not there: the values go
into a new file, and `.metadata`, which names it, takes its place in one step at the end. What was there before is readable until then.
"""

from __future__ import annotations

import io
import itertools
import os
import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

from ..._device import layout as layout_type
from ..._size import Size
from ...tensor import Tensor
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

METADATA, VERSION = ".metadata", "1.0.0"
PACKAGE = __name__.partition(".")[0]
HOMES = {"_get_layout": ".serialization"}  # of what is written in a private file here
HARMLESS = {("collections", "OrderedDict"), ("builtins", "set"), ("builtins", "getattr")}


@dataclass
class _StorageInfo:
    """Where the bytes of a value are."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


_Pickler: Any = pickle._Pickler


class _InTorchsNames(_Pickler):  # type: ignore[misc]
    """Writes our classes and functions by the names that they have in torch."""

    dispatch: ClassVar[dict[type, Any]] = dict(_Pickler.dispatch)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        home = getattr(obj, "__module__", None) or PACKAGE
        first, dot, rest = home.partition(".")
        if first not in ("torch", PACKAGE):
            super().save_global(obj, name)
            return
        name = name or obj.__qualname__
        public = HOMES.get(name, "" if rest.startswith("_") else f"{dot}{rest}")
        self.write(pickle.GLOBAL + f"torch{public}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[type] = dispatch[FunctionType] = save_global

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, layout_type):
            return import_module(f"{PACKAGE}.serialization")._get_layout, (str(obj),)
        return NotImplemented


class _OfTorchsNames(pickle.Unpickler):
    """Reads what torch wrote about a checkpoint, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        first, dot, rest = module.partition(".")
        if first == "torch":
            found: Any = import_module(f"{PACKAGE}{dot}{rest}")
            for part in name.split("."):
                found = getattr(found, part)
            return found
        if first == "pathlib" or (module, name) in HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into the description of a checkpoint")


class _InFolder:
    """A checkpoint in a folder."""

    path: Path

    def reset(self, checkpoint_id: Any = None) -> None:
        """Let the next checkpoint be elsewhere."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path


class FileSystemWriter(_InFolder):
    """Writes a checkpoint into a folder."""

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        **others: Any,
    ) -> None:
        self.path, self.sync_files, self.overwrite = Path(path), sync_files, overwrite

    def write(self, values: dict[str, Any], places: dict[str, tuple[Any, ...]]) -> Metadata:
        """Write values by name; `places` says where each stands in nested dicts and lists."""
        save = import_module(f"{PACKAGE}.serialization").save
        if not self.overwrite and (self.path / METADATA).exists():
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
        self.path.mkdir(parents=True, exist_ok=True)
        older = set(self.path.glob("__0_*.distcp"))
        fresh = next(path for count in itertools.count() if (path := self.path / f"__0_{count}.distcp") not in older)
        described: dict[str, Any] = {}
        storage: dict[MetadataIndex, _StorageInfo] = {}
        with open(fresh, "wb") as file:
            for name, value in values.items():
                index, described[name] = _described(name, value)
                content = io.BytesIO()
                save(value.detach().cpu().clone() if isinstance(value, Tensor) else value, content)
                storage[index] = _StorageInfo(fresh.name, file.tell(), content.tell())
                file.write(content.getbuffer())
            self._sync(file)
        made = Metadata(described, places, storage, StorageMeta(str(self.path), str(uuid.uuid4())), VERSION)
        beside = self.path / f"{METADATA}.tmp"
        with open(beside, "wb") as file:
            _InTorchsNames(file, protocol=4).dump(made)
            self._sync(file)
        os.replace(beside, self.path / METADATA)
        for path in older:  # which the metadata spoke of until now
            path.unlink(missing_ok=True)
        return made

    def _sync(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())


def _described(name: str, value: Any) -> tuple[MetadataIndex, Any]:
    if not isinstance(value, Tensor):
        return MetadataIndex(name), BytesStorageMetadata()
    begin = Size([0] * value.ndim)
    whole = TensorStorageMetadata(
        TensorProperties.create_from_tensor(value), value.shape, [ChunkStorageMetadata(begin, value.shape)]
    )
    return MetadataIndex(name, begin, 0), whole


class FileSystemReader(_InFolder):
    """Reads a checkpoint from a folder."""

    def __init__(self, path: Any, **others: Any) -> None:
        self.path = Path(path)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Read what there is."""
        with open(self.path / METADATA, "rb") as file:
            found: Metadata = _OfTorchsNames(file).load()
        return found

    def read(self, metadata: Metadata, name: str) -> Any:
        """Read a value; the parts of a tensor that several processes wrote are put together."""
        kind = metadata.state_dict_metadata[name]
        if not isinstance(kind, TensorStorageMetadata):
            return self._piece(metadata.storage_data[MetadataIndex(name)], weights_only=False)
        pieces = [
            (part, self._piece(metadata.storage_data[MetadataIndex(name, part.offsets)], weights_only=True))
            for part in kind.chunks
        ]
        if len(pieces) == 1:
            return pieces[0][1]
        whole = pieces[0][1].new_empty(kind.size)
        for part, values in pieces:
            whole[tuple(slice(at, at + size) for at, size in zip(part.offsets, part.sizes, strict=True))] = values
        return whole

    def _piece(self, info: _StorageInfo, *, weights_only: bool) -> Any:
        if getattr(info, "transform_descriptors", None):
            raise NotImplementedError(f"checkpoints whose values are transformed by {info.transform_descriptors}")
        load = import_module(f"{PACKAGE}.serialization").load
        with open(self.path / info.relative_path, "rb") as file:
            file.seek(info.offset)
            content = io.BytesIO(file.read(info.length))
        return load(content, weights_only=weights_only)


__all__ = ["FileSystemReader", "FileSystemWriter"]
