"""torch.cuda.memory: how much of the device's memory is in use. CuPy's pool keeps it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .._absent import finder
from . import _cupy, _number, is_available


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the bytes that are free on the device, and all of them."""
    with _cupy().cuda.Device(_number(device)):
        free, total = _cupy().cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that arrays hold; 0 without a device."""
    return int(_cupy().get_default_memory_pool().used_bytes()) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that CuPy's pool holds; 0 without a device."""
    return int(_cupy().get_default_memory_pool().total_bytes()) if is_available() else 0


# The pool grows and does not shrink by itself: what it holds is the most that was in use since `empty_cache`.
max_memory_allocated = max_memory_reserved = max_memory_cached = memory_cached = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin to count anew, by giving memory back that no array uses."""
    _cupy()
    empty_cache()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def empty_cache() -> None:
    """Give memory back that no array uses."""
    if is_available():
        _cupy().get_default_memory_pool().free_all_blocks()


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return the bytes in use under torch's names; nothing without a device."""
    if not is_available():
        return OrderedDict()
    held, pool = memory_allocated(device), memory_reserved(device)
    return OrderedDict(
        {
            "allocated_bytes.all.current": held,
            "allocated_bytes.all.peak": pool,
            "reserved_bytes.all.current": pool,
            "reserved_bytes.all.peak": pool,
        }
    )


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the bytes in use as text."""
    return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())


__getattr__ = finder("torch.cuda.memory")

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
]
