"""torch.PyTorchFileReader: the records of a file that `torch.save` wrote, for programs that read one by one."""

from __future__ import annotations

import os
from typing import Any
from weakref import finalize

from .._functions.creation import from_numpy
from .archives import ArchiveReader

__all__ = ["PyTorchFileReader"]

_NUMBER = ".data/serialization_id"


class PyTorchFileReader:
    """Reads the records of a file, by its path or from a file that is open."""

    def __init__(self, name_or_buffer: Any) -> None:
        if isinstance(name_or_buffer, (str, os.PathLike)):
            file: Any = open(name_or_buffer, "rb")  # noqa: SIM115 - it stays open as long as the reader lives
            finalize(self, file.close)
            self._archive = ArchiveReader(file, name_or_buffer)
        else:
            self._archive = ArchiveReader(name_or_buffer)

    def get_all_records(self) -> list[str]:
        """Return the names of the records."""
        return [name.partition("/")[2] for name in self._archive.zip.namelist()]

    def has_record(self, name: str) -> bool:
        """Tell whether there is a record."""
        return self._archive.has(name)

    def get_record(self, name: str) -> bytes:
        """Return what a record holds."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """Return how many bytes a record has."""
        return self._archive.place_of(name)[0].file_size

    def get_record_offset(self, name: str) -> int:
        """Return where in the file a record begins."""
        return self._archive.place_of(name)[1]

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """Return a record as a tensor of one dimension, whose storage programs then take."""
        held: Any = from_numpy(self._archive.read_array(name, numel * dtype.itemsize))
        return held.view(dtype)

    def serialization_id(self) -> str:
        """Return the number that tells this file from others; files without one give no text."""
        return self.get_record(_NUMBER).decode() if self.has_record(_NUMBER) else ""
