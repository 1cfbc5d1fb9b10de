"""Numbers as people read them: bytes and counts in few digits."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Write a number of things: 1 program, 2 programs."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def readable_bytes(count: float) -> str:
    """Write a number of bytes: 160 B, 1.5 KiB, 3.0 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def readable_count(number: int) -> str:
    """Write a number of things: 128, 1.20 k, 3.40 M."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return str(number)
