"""torch.cuda.streams: the orders in which a device works, and points in them. They are CuPy's."""

from __future__ import annotations

from typing import Any

from .._tracebacks import guard_public as _guard_public
from . import _cupy, is_available


class Stream:
    """An order of work on the device.

    Args:
        device: the device whose order it is
        priority: a smaller number goes first

    Example:
        >>> if torch.cuda.is_available():
        ...     with torch.cuda.stream(torch.cuda.Stream()):
        ...         total = torch.ones(2, device="cuda").sum()
    """

    def __init__(self, device: Any = None, priority: int = 0, *, _held: Any = None) -> None:
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        self._stream = _cupy().cuda.Stream(non_blocking=True) if _held is None else _held

    @property
    def cuda_stream(self) -> int:
        return int(self._stream.ptr)

    def synchronize(self) -> None:
        """Wait until all work in the stream is done."""
        self._stream.synchronize()

    def query(self) -> bool:
        """Tell whether all work in the stream is done."""
        return bool(self._stream.done)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what another stream has been given."""
        self._stream.wait_event(stream._stream.record())

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        self._stream.wait_event(event._event)

    def record_event(self, event: Event | None = None) -> Event:
        """Mark where the stream's work stands."""
        event = Event() if event is None else event
        event.record(self)
        return event


class Event:
    """A point in the device's work, to measure times between two of them."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._event = _cupy().cuda.Event(block=blocking, disable_timing=not enable_timing)

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Event:
        """Refuse an event of another process: CuPy's cannot be sent."""
        _cupy()
        raise NotImplementedError("torch.cuda.Event.from_ipc_handle: retrograd's events stay in their process")

    def record(self, stream: Any = None) -> None:
        """Mark where the device's work stands."""
        self._event.record(None if stream is None else stream._stream)

    def query(self) -> bool:
        """Tell whether the device has come here."""
        return bool(self._event.done)

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this point."""
        (current_stream() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait until the device has come here."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another."""
        return float(_cupy().cuda.get_elapsed_time(self._event, end_event._event))


class StreamContext:
    """A block whose work goes into a stream; None leaves everything as it is."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream._stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*exc)


stream = StreamContext


class ExternalStream(Stream):
    """A stream that another library has made, by its address."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, _held=_cupy().cuda.ExternalStream(stream_ptr))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Return a stream by its address."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Let work go into a stream from now on; None changes nothing."""
    if stream is not None:
        stream._stream.use()


def current_stream(device: Any = None) -> Stream:
    """Return the stream that work goes into."""
    return Stream(_held=_cupy().cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the default stream."""
    return Stream(_held=_cupy().cuda.Stream.null)


_guard_public(globals())
