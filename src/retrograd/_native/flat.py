"""Machine code that needs no linker: a kernel's code and constants in one piece, which runs wherever it lies.

Linking an object file takes LLVM, and loading LLVM takes 40 ms. Kernels call nothing and know their constants by distance, so that what a
linker would do can be done once, when a kernel is compiled: lay its sections out behind one another and write the distances into the code.
A process that finds all its kernels in the cache never loads LLVM. Only ELF files for x86-64 are read; everything else is left to LLVM.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from functools import cache
from typing import Any, Final

_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_ENTRY: Final = struct.Struct("<Q")
_SYMBOLS, _RELOCATIONS, _NO_BITS, _ALLOCATED = 2, 4, 8, 2  # types of sections, and a flag
_DISTANCES: Final = (2, 4)  # R_X86_64_PC32, R_X86_64_PLT32
_loaded: list[mmap.mmap] = []  # code stays as long as the process does


@cache
def is_possible() -> bool:
    """Tell whether this process may run code in memory that it has written."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 1 << 32:
        return False
    try:
        _executable(b"\xc3")
    except OSError:
        return False
    return True


def flattened(file: bytes, name: str) -> bytes | None:
    """Return the code of an object file in one piece; None if it needs a linker."""
    if file[:6] != b"\x7fELF\x02\x01" or file[18:20] != b"\x3e\x00":
        return None
    start, count, names = _fields(file)
    sections = [_SECTION.unpack_from(file, start + k * _SECTION.size) for k in range(count)]
    texts = sections[names][4]
    places: dict[int, int] = {}
    out = bytearray()
    for k, (label, kind, flags, _, offset, size, _, _, align, _) in enumerate(sections):
        # what unwinds the stack is not for code that raises nothing
        if not flags & _ALLOCATED or _text(file, texts + label) == b".eh_frame":
            continue
        out += bytes(-len(out) % max(align, 1))
        places[k] = len(out)
        out += bytes(size) if kind == _NO_BITS else file[offset : offset + size]
    symbols: list[tuple[Any, ...]] = []
    entry = None
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _SYMBOLS:
            continue
        symbols = [_SYMBOL.unpack_from(file, offset + k) for k in range(0, size, _SYMBOL.size)]
        for label, _, _, section, value, _ in symbols:
            if section in places and _text(file, sections[link][4] + label) == name.encode():
                entry = places[section] + value
    for _, kind, _, _, offset, size, _, target, _, _ in sections:
        if kind != _RELOCATIONS or target not in places:
            continue
        for k in range(0, size, _RELOCATION.size):
            where, info, added = _RELOCATION.unpack_from(file, offset + k)
            section, value = symbols[info >> 32][3:5]
            if info & 0xFFFFFFFF not in _DISTANCES or section not in places:
                return None  # a function of the C library, or an address
            at = places[target] + where
            struct.pack_into("<i", out, at, places[section] + value + added - at)
    return None if entry is None else _ENTRY.pack(entry) + bytes(out)


def load(code: bytes) -> int:
    """Put code into memory and return the address of its function."""
    return _executable(code[_ENTRY.size :]) + _ENTRY.unpack_from(code)[0]  # type: ignore[no-any-return]


def _fields(file: bytes) -> tuple[int, int, int]:
    (start,) = struct.unpack_from("<Q", file, 0x28)
    count, names = struct.unpack_from("<HH", file, 0x3C)
    return start, count, names


def _text(file: bytes, at: int) -> bytes:
    return file[at : file.index(b"\0", at)]


def _executable(code: bytes) -> int:
    """Write code into new memory, then let it be run and written no more."""
    memory = mmap.mmap(-1, len(code), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(address, len(code), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
    _loaded.append(memory)
    return address
