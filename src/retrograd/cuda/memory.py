"""torch.cuda.memory: how much of the device's memory is in use. CuPy's pool keeps it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .._absent import finder
from .._tracebacks import guard_public as _guard_public
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
    """Return the bytes that CuPy's pool holds; 0 without a device.

    Args:
        device: its number; the current one unless it is given

    Example:
        >>> torch.cuda.memory_reserved() >= 0
        True
    """
    return int(_cupy().get_default_memory_pool().total_bytes()) if is_available() else 0


# The pool grows and does not shrink by itself: what it holds is the most that was in use since `empty_cache`.
max_memory_allocated = max_memory_reserved = max_memory_cached = memory_cached = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peak, by giving back memory that no array uses."""
    _cupy()
    empty_cache()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def empty_cache() -> None:
    """Give memory back that no array uses.

    Example:
        >>> torch.cuda.empty_cache()  # does nothing without a device
    """
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


# ---- the allocator ----
# CuPy's pool is the allocator. What torch counts besides, and memory of the host that it keeps for copies, is not there.
def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return the bytes in use, in dictionaries; nothing without a device."""
    found: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *outer, last = name.split(".")
        place = found
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def host_memory_stats() -> OrderedDict[str, int]:
    """Return the bytes of the host that are kept for copies: none are."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return the bytes of the host that are kept for copies: none are."""
    return {}


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Do nothing: what was in use before is not counted."""
    _cupy()


reset_accumulated_host_memory_stats = reset_peak_host_memory_stats = reset_accumulated_memory_stats


def empty_host_cache() -> None:
    """Give memory of the host back that CuPy has kept for copies."""
    if is_available():
        _cupy().get_default_pinned_memory_pool().free_all_blocks()


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Take bytes from the pool, and return where they lie."""
    with _cupy().cuda.Device(_number(device)):
        held = _cupy().cuda.alloc(size)
    _taken[int(held.ptr)] = held
    return int(held.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` has taken."""
    _cupy()
    _taken.pop(mem_ptr, None)


_taken: dict[int, Any] = {}


def caching_allocator_enable(value: bool = True) -> None:
    """Let CuPy keep memory that was given back, or not."""
    if is_available():
        _cupy().cuda.set_allocator(_cupy().get_default_memory_pool().malloc if value else None)


@contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Run a block in which memory that was given back is not kept."""
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(True)


def get_allocator_backend() -> str:
    """Return what gives out memory: a pool."""
    _cupy()
    return "native"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let CuPy's pool take at most a share of the device's memory."""
    pool = _cupy().get_default_memory_pool()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with _cupy().cuda.Device(_number(device)):
        pool.set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the share of the device's memory that CuPy's pool may take."""
    total = mem_get_info(device)[1]
    with _cupy().cuda.Device(_number(device)):
        limit = _cupy().get_default_memory_pool().get_limit()
    return float(limit / total) if limit else 1.0


def memory_snapshot(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: CuPy's pool does not tell which pieces it has given out."""
    _cupy()
    raise NotImplementedError(
        "torch.cuda.memory_snapshot needs torch's own allocator: retrograd takes memory from CuPy's pool"
    )


def list_gpu_processes(device: Any = None) -> str:
    """Return which programs hold memory of the device, by NVIDIA's management library."""
    try:
        import pynvml  # type: ignore[import-not-found]
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    pynvml.nvmlInit()
    number = _number(device)
    found = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(number))
    lines = [f"process {one.pid:>10d} uses {one.usedGpuMemory / 2**20:>12.3f} MB GPU memory" for one in found]
    return "\n".join([f"GPU:{number}", *(lines or ["no processes are running"])])


class MemPool:
    """A pool of memory of its own: cannot be made here."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        _cupy()
        raise NotImplementedError(
            "torch.cuda.MemPool needs torch's own allocator: retrograd takes memory from CuPy's pool"
        )


@contextmanager
def use_mem_pool(pool: Any, device: Any = None) -> Iterator[None]:
    """Run a block that takes memory from a pool: there is none to give."""
    MemPool()
    yield


def change_current_allocator(allocator: Any) -> None:
    """Refuse: an allocator of torch is compiled code."""
    _cupy()
    raise NotImplementedError(
        "torch.cuda.change_current_allocator needs torch's own allocator: set CuPy's by cupy.cuda.set_allocator"
    )


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


_guard_public(globals())
