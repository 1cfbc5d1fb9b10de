"""What a program can set about files: byte order, how files are mapped, whether memories are left out."""

from __future__ import annotations

import mmap
from enum import Enum
from typing import Any, Self


class LoadEndianness(Enum):
    """The order of bytes in files that do not say theirs."""

    __module__ = "retrograd.serialization"
    NATIVE = 1
    LITTLE = 2
    BIG = 3


PRIVATE, SHARED = getattr(mmap, "MAP_PRIVATE", 2), getattr(mmap, "MAP_SHARED", 1)  # which Windows lacks


class _Options:
    endianness: LoadEndianness | None = None
    crc32 = True
    mmap_flags: int = PRIVATE
    skipping = 0


_options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the order of bytes in files that do not say theirs; None is this machine's."""
    return _options.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Set the order of bytes in files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options.endianness = endianness


def get_crc32_options() -> bool:
    """Tell whether check sums are wanted in files."""
    return _options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Say whether check sums are wanted in files: they are always written."""
    _options.crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """Return how `load(mmap=True)` maps a file."""
    return _options.mmap_flags


class set_default_mmap_options:  # noqa: N801 - torch's name
    """Map files privately or shared from now on, or while a block runs."""

    __module__ = "retrograd.serialization"

    def __init__(self, flags: int) -> None:
        if flags not in (PRIVATE, SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self.before = _options.mmap_flags
        _options.mmap_flags = flags

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _options.mmap_flags = self.before


class skip_data:  # noqa: N801 - torch's name
    """While a block runs, files are written with zeros for the memories of tensors, and read without reading them."""

    __module__ = "retrograd.serialization"

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors  # of which there are none here

    @staticmethod
    def is_on() -> bool:
        """Tell whether memories are left out."""
        return _options.skipping > 0

    def __enter__(self) -> Self:
        _options.skipping += 1
        return self

    def __exit__(self, *_: object) -> None:
        _options.skipping -= 1
