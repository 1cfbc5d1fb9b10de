"""torch.distributed.checkpoint.metadata: what a folder says of the values that lie in it, as torch writes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..._device import channels_last, contiguous_format, preserve_format, strided
from ..._dtypes import get_default_dtype
from ..._public import set_all
from ..._size import Size


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins and how long it is in each dimension."""

    offsets: Any
    sizes: Any


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801 - torch's name
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format), strict=True))


@dataclass
class TensorProperties:
    """What a tensor is besides its shape."""

    dtype: Any = field(default_factory=get_default_dtype)
    layout: Any = strided
    requires_grad: bool = False
    memory_format: Any = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        code = next(code for code, form in _FORMATS.items() if form is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, code, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = _FORMATS[code]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """Describe a tensor."""
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint."""

    properties: TensorProperties
    size: Any
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Any other value of a checkpoint."""


@dataclass
class StorageMeta:
    """Which checkpoint it is."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint has: the values by name, their places in nested dicts and lists, and where their bytes are."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True, init=False)
class MetadataIndex:
    """The name of a value, or of a part of a tensor."""

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        vars(self).update(fqn=fqn, index=index)
        if offset is not None:
            vars(self)["offset"] = Size(offset)


set_all(globals())
