"""torch.cpu: the questions that programs ask of any device, for the CPU. Its work is done when an operation returns."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import Any

from .._missing import MissingNameError


def is_available() -> bool:
    """Tell whether there is a CPU."""
    return True


is_initialized = is_available


def device_count() -> int:
    """Return the number of CPUs as torch counts them."""
    return 1


def current_device() -> str:
    """Return the name of the device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accept the one device there is."""


def synchronize(device: Any = None) -> None:
    """Wait for nothing: every operation is done when it returns."""


class Stream:
    """The one order in which the CPU works."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Wait for nothing."""

    def record_event(self, event: Any = None) -> None:
        """Note nothing."""

    def wait_event(self, event: Any) -> None:
        """Wait for nothing."""


class Event:
    """A point in the CPU's work."""

    def query(self) -> bool:
        """Tell whether the work is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Note nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait(self, stream: Any = None) -> None:
        """Wait for nothing."""


_STREAM = Stream()


def current_stream(device: Any = None) -> Stream:
    """Return the one stream."""
    return _STREAM


def stream(stream: Any) -> Any:
    """Return a block in which nothing changes."""
    return nullcontext()


def __getattr__(name: str) -> Any:
    if name == "amp":  # when asked for
        return import_module(".amp", __package__)
    raise MissingNameError("torch.cpu", name)


__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]
