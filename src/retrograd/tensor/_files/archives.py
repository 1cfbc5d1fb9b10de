"""The zip files of torch.save: records that are stored as they are, each beginning at a multiple of 64 bytes.

Note [An archive in a file]
torch counts the places in an archive from where the archive begins, which may be in the middle of a file, and an archive that is read ends
with the file. So two objects saved one after the other can be read only from where the second begins, or, by chance, if both
archives have their tables at the same place: then the first one is read.
"""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from typing import Any, Self

import numpy as np

from .options import SHARED

ALIGNED = 64  # bytes: where records begin, so that a mapped file has arrays where they should be
_PADDING_ID = b"FB"
_ZIP64_EXTRA = 20  # bytes that a header has more for a record of more than 2 GB
DEFLATED_AT_MOST = 1032  # how many bytes one byte of deflate can stand for
BEGINNING = b"PK\x03\x04"
DAMAGED = (
    ". This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is "
    "corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified "
    "after saving."
)


def unreadable(why: str) -> RuntimeError:
    """Return torch's error for a file that cannot be read."""
    return RuntimeError(f"PytorchStreamReader failed {why}{DAMAGED}")


def bytes_left(file: Any) -> int:
    """Return how many bytes a file has from where it is."""
    place: int = file.tell()
    end: int = file.seek(0, 2)
    file.seek(place)
    return end - place


class _Part:
    """A file from a place on, counted from there. See Note [An archive in a file]."""

    def __init__(self, file: Any, stop: int | None = None) -> None:
        self.file = file
        self.start: int = file.tell()
        self.stop = stop  # counted as places are
        self.write = file.write if hasattr(file, "write") else None
        self.flush = getattr(file, "flush", lambda: None)

    def tell(self) -> int:
        return int(self.file.tell()) - self.start

    def seek(self, place: int, whence: int = 0) -> int:
        if whence == 1:
            place += self.tell()
        elif whence == 2:
            place += self.file.seek(0, 2) - self.start if self.stop is None else self.stop
        if place < 0:
            raise OSError("before the beginning")
        self.file.seek(self.start + place)
        return place

    def seekable(self) -> bool:
        return True

    def read(self, count: int = -1) -> Any:
        if self.stop is not None and (count < 0 or self.tell() + count > self.stop):
            count = max(0, self.stop - self.tell())
        return self.file.read(count)


class _Stream:
    """A file that can only be written to."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.place = 0
        self.flush = getattr(file, "flush", lambda: None)

    def write(self, data: Any) -> int:
        self.file.write(data)
        self.place += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self.place


# ---- writing ----
class ArchiveWriter:
    """Writes the records of an archive."""

    def __init__(self, file: Any, root: str) -> None:
        try:
            place: Any = _Part(file)
        except (AttributeError, OSError):
            place = _Stream(file)
        self.zip = zipfile.ZipFile(place, "w", zipfile.ZIP_STORED)
        self.root = root

    def write(self, name: str, content: Any) -> None:
        """Write a record: bytes, or an array of bytes."""
        view = memoryview(content)
        info = zipfile.ZipInfo(f"{self.root}/{name}")
        info.file_size = view.nbytes
        large = info.file_size * 1.05 > zipfile.ZIP64_LIMIT  # as zipfile decides
        begin = self.zip.start_dir + 30 + len(info.filename.encode()) + 4 + (_ZIP64_EXTRA if large else 0)
        padding = -begin % ALIGNED
        info.extra = _PADDING_ID + struct.pack("<H", padding) + b"Z" * padding
        with self.zip.open(info, "w") as record:
            record.write(view)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.zip.close()  # which writes the table
        else:
            self.zip.fp = None  # an archive that could not be written gets none, not even when it is collected


# ---- reading ----
class ArchiveReader:
    """Reads the records of an archive."""

    def __init__(self, file: Any, path: str | os.PathLike[str] | None = None) -> None:
        self.part = _Part(file)
        self.path = path
        self.zip = self._opened()
        names = self.zip.namelist()
        bare = next((name for name in names if "/" not in name), None)
        if bare is not None:
            raise RuntimeError(f"file in archive is not in a subdirectory: {bare}")
        self.root = names[0].partition("/")[0] if names else ""

    def _opened(self) -> zipfile.ZipFile:
        try:
            found = zipfile.ZipFile(self.part)
        except zipfile.BadZipFile:
            end = self.part.seek(0, 2)
            why = "not a ZIP archive" if end < 22 else "failed finding central directory"
            raise unreadable(f"reading zip archive: {why}") from None
        before = min((info.header_offset for info in found.infolist()), default=0)
        if not before:
            return found
        self.part.stop = before  # another archive, whose table torch reads if the last one's should be there
        try:
            first = zipfile.ZipFile(self.part)
        except zipfile.BadZipFile:
            first = None
        if first is None or first.start_dir != found.start_dir - before:
            raise RuntimeError(
                f"{unreadable('reading zip archive: invalid header or archive is corrupted')}\nHint: {before} bytes lie before "
                f"the last object that was saved into this file; to load that one, seek to where it begins."
            )
        return first

    def has(self, name: str) -> bool:
        """Tell whether there is a record."""
        return f"{self.root}/{name}" in self.zip.NameToInfo

    def place_of(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        """Return the entry of a record, and where its bytes begin."""
        info = self.zip.NameToInfo.get(f"{self.root}/{name}")
        if info is None:
            raise unreadable(f"locating file {name}: file not found")
        self.part.seek(info.header_offset)
        header = self.part.read(30)
        if header[:4] != BEGINNING:
            raise unreadable(f"reading file {name}: invalid header or archive is corrupted")
        place = info.header_offset + 30 + sum(struct.unpack_from("<HH", header, 26))
        self.part.seek(place)
        held = bytes_left(self.part)
        stored = info.compress_type == zipfile.ZIP_STORED
        if max(info.compress_size, info.file_size if stored else info.file_size // DEFLATED_AT_MOST) > held:
            raise unreadable(f"reading file {name}: {info.file_size} bytes are announced where {held} are left")
        return info, place

    def read(self, name: str) -> bytes:
        """Return a record."""
        info, place = self.place_of(name)
        if info.compress_type != zipfile.ZIP_STORED:
            return self.zip.read(info)
        self.part.seek(place)
        return self.part.read(info.file_size)  # type: ignore[no-any-return]

    def read_array(self, name: str, nbytes: int) -> Any:
        """Return a record as a new array of bytes."""
        info, place = self.place_of(name)
        if info.file_size != nbytes:
            raise unreadable(f"reading file {name}: it has {info.file_size} bytes where {nbytes} should be")
        made = np.empty(nbytes, np.uint8)
        if info.compress_type != zipfile.ZIP_STORED:
            made[...] = np.frombuffer(self.zip.read(info), np.uint8)
            return made
        self.part.seek(place)
        fill(self.part.file, made)
        return made

    def mapped_array(self, name: str, nbytes: int, flags: int) -> Any:
        """Return a record as an array that lies in the file."""
        info, place = self.place_of(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != nbytes:
            return self.read_array(name, nbytes)
        if not nbytes:
            return np.empty(0, np.uint8)
        begin = place // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        shared = flags == SHARED
        with open(os.fspath(self.path or ""), "r+b" if shared else "rb") as file:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            memory = mmap.mmap(file.fileno(), place - begin + nbytes, access=access, offset=begin)
        return np.frombuffer(memory, np.uint8, nbytes, place - begin)


def fill(file: Any, array: Any) -> None:
    """Read bytes from a file into an array, or another buffer of bytes."""
    left = memoryview(array)
    read_into = getattr(file, "readinto", None)
    while left.nbytes:
        if read_into is not None:
            count = read_into(left)
        else:
            found = file.read(left.nbytes)
            count = len(found)
            left[:count] = found
        if not count:
            raise RuntimeError(f"unexpected EOF, expected {left.nbytes} more bytes. The file might be corrupted.")
        left = left[count:]
