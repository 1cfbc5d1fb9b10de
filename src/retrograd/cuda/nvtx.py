"""torch.cuda.nvtx: marks for NVIDIA's profilers, by CuPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import is_available


def _nvtx() -> Any:
    if not is_available():
        raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
    from cupy.cuda import nvtx

    return nvtx


def range_push(msg: str) -> None:
    """Open a range."""
    _nvtx().RangePush(msg)


def range_pop() -> None:
    """Close the innermost range."""
    _nvtx().RangePop()


def range_start(msg: str) -> int:
    """Open a range that may end anywhere, and return its number."""
    return int(_nvtx().RangeStart(msg))


def range_end(range_id: int) -> None:
    """Close a range by its number."""
    _nvtx().RangeEnd(range_id)


def mark(msg: str) -> None:
    """Mark a moment."""
    _nvtx().Mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Put a block into a range."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
