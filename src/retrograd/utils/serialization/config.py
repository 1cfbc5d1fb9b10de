"""torch.utils.serialization.config: what `save` and `load` do unless a call says otherwise."""

from __future__ import annotations

from typing import Any

from ... import serialization as _own


class _Load:
    """Settings of `load`."""

    mmap = False
    calculate_storage_offsets = False

    @property
    def endianness(self) -> Any:
        return _own.get_default_load_endianness()

    @endianness.setter
    def endianness(self, value: Any) -> None:
        _own.set_default_load_endianness(value)

    @property
    def mmap_flags(self) -> int | None:
        return _own.get_default_mmap_options()

    @mmap_flags.setter
    def mmap_flags(self, value: int) -> None:
        _own.set_default_mmap_options(value)


class _Save:
    """Settings of `save`."""

    use_pinned_memory_for_d2h = False
    storage_alignment = 64

    @property
    def compute_crc32(self) -> bool:
        return _own.get_crc32_options()

    @compute_crc32.setter
    def compute_crc32(self, value: bool) -> None:
        _own.set_crc32_options(value)


load, save = _Load(), _Save()
