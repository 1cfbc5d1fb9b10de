"""torch.cpu: the questions that programs ask of any device, for the CPU. Its work is done when an operation returns."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .._absent import finder
from .._public import set_all


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


_current = _DEFAULT = Stream()


def current_stream(device: Any = None) -> Stream:
    """Return the stream of the innermost block; all are one order of work."""
    return _current


class StreamContext:
    """A block in which another stream is the current one; None leaves it as it is."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream, self.prev_stream = stream, _DEFAULT

    def __enter__(self) -> None:
        global _current
        if self.stream is not None:
            self.prev_stream, _current = _current, self.stream

    def __exit__(self, *exc: object) -> None:
        global _current
        if self.stream is not None:
            _current = self.prev_stream


stream = StreamContext


def get_capabilities() -> Mapping[str, Any]:
    """Return which instructions the processor has, by torch's names, and how many cores."""
    return import_module("._capabilities", __package__).capabilities()  # type: ignore[no-any-return]


def _is_vnni_supported() -> bool:
    """Tell whether the processor multiplies bytes in one instruction."""
    return bool(get_capabilities().get("avx512_vnni"))


def _is_amx_tile_supported() -> bool:
    """Tell whether the processor has registers for small matrices."""
    return bool(get_capabilities().get("amx_tile"))


__getattr__ = finder("torch.cpu", by_torchs_name=True, modules="amp")


set_all(globals())
