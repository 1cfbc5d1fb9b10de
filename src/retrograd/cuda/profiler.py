"""torch.cuda.profiler: begin and end what NVIDIA's profilers record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _cupy


def start() -> None:
    """Begin to record."""
    _cupy().cuda.runtime.profilerStart()


def stop() -> None:
    """End the record."""
    _cupy().cuda.runtime.profilerStop()


@contextmanager
def profile() -> Iterator[None]:
    """Record a block."""
    start()
    try:
        yield
    finally:
        stop()


__all__ = ["profile", "start", "stop"]
