"""torch.monitor: numbers that a program counts in intervals of time, and events that it tells handlers about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING as TYPE_CHECKING
from typing import Any

data_value_t = int | float | bool | str
STAT_EVENT = "torch.monitor.Stat"


class Aggregation(IntEnum):
    """What is kept of the values of an interval."""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = range(1, 7)


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
_COMPUTED: dict[Aggregation, Callable[[list[float]], float]] = {
    VALUE: lambda values: values[-1],
    MEAN: lambda values: sum(values) / len(values),
    COUNT: lambda values: float(len(values)),
    SUM: lambda values: sum(values),
    MAX: lambda values: max(values),
    MIN: lambda values: min(values),
}


class Event:
    """Something that has happened: a name, a time, and values by name."""

    def __init__(self, name: str, timestamp: datetime, data: dict[str, data_value_t]) -> None:
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Let a function be called with each event."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call a function no more."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tell all handlers about an event."""
    for one in list(_handlers):
        one._handler(event)


class Stat:
    """Values of an interval. When it ends, or has as many values as it may, handlers are told what was made of them."""

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int | None = None
    ) -> None:
        self.name = name
        self._aggregations, self._length, self._most = list(aggregations), window_size.total_seconds(), max_samples
        self._interval = self._now()
        self._values: list[float] = []
        self._made = dict.fromkeys(self._aggregations, 0.0)
        self._is_full = False

    def _now(self) -> int:
        return int(datetime.now().timestamp() / self._length)

    def add(self, v: float) -> None:
        """Take a value into the interval; one that is full takes no more."""
        if (now := self._now()) != self._interval:
            self._close()
            self._interval, self._is_full = now, False
        if self._is_full:
            return
        self._values.append(float(v))
        if self._most is not None and len(self._values) >= self._most:
            self._close()
            self._is_full = True

    def _close(self) -> None:
        values, self._values = self._values, []
        if not values:
            return
        self._made = {one: _COMPUTED[one](values) for one in self._aggregations}
        data: dict[str, data_value_t] = {f"{self.name}.{one.name.lower()}": made for one, made in self._made.items()}
        log_event(Event(STAT_EVENT, datetime.now(), data))

    def get(self) -> dict[Aggregation, float]:
        """Return what was made of the last interval that has ended."""
        if self._now() != self._interval:
            self._close()
            self._interval, self._is_full = self._now(), False
        return self._made

    @property
    def count(self) -> int:
        """Return how many values the interval has."""
        return len(self._values)


class TensorboardEventHandler:
    """A handler that writes the numbers of `Stat`s for TensorBoard."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
