"""torch.autograd.profiler_util: what a profiler has recorded, one by one, summed up, and as tables and traces."""

from __future__ import annotations

import bisect
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ._profiling import USER, Entry, Memory, Recorder

OLD_WORDS = ("cuda", "xpu", "privateuse1")  # in the names of columns: torch says "device" now
WIDTH = 12  # of a column of numbers


def _format_time(time_us: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    if not total_time_us:
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(nbytes: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return how long."""
        return self.end - self.start


class _Times:
    """What single events and sums of them say; there is one kind of device, so the times of others are 0."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    input_shapes: Any

    device_time = device_time_total = self_device_time_total = cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    flops: int
    stack: list[str]
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False
    node_id, use_device, overload_name = -1, None, ""

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _format_time(self.self_cpu_time_total)


FormattedTimesMixin = _Times


class StringTable(defaultdict[str, str]):
    """Names by what a compiler has made of them: names here are as they are written."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory, to be asked for those of an interval."""

    def __init__(self, mem_records: Any) -> None:
        self._mem_records = list(mem_records)
        indexed = sorted((record[0].start_ns(), number) for number, record in enumerate(self._mem_records))
        self._start_nses = [start for start, _ in indexed]
        self._indices = [number for _, number in indexed]

    def in_interval(self, start_us: float, end_us: float) -> Iterator[Any]:
        """Return the records of an interval."""
        first = bisect.bisect_left(self._start_nses, start_us * 1000)
        last = bisect.bisect_right(self._start_nses, end_us * 1000)
        for at in range(first, last):
            yield self._mem_records[self._indices[at]]


class Kernel(NamedTuple):
    """What a device has run for an event."""

    name: str
    device: int
    duration: float


class FunctionEvent(_Times):
    """One call."""

    count = 1

    def __init__(self, entry: Entry, origin: int) -> None:
        self.id = entry.index + 1
        self.name = self.trace_name = entry.name
        self.key = "ProfilerStep*" if entry.name.startswith("ProfilerStep#") else entry.name
        end = entry.start if entry.end is None else entry.end
        self.time_range = Interval((entry.start - origin) / 1000, (end - origin) / 1000)
        self.thread = entry.thread
        self.input_shapes = entry.shapes or []
        self.is_user_annotation = entry.kind == USER
        self.self_cpu_memory_usage, self.flops, self.stack = entry.memory, entry.flops, list(entry.stack)
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def cpu_memory_usage(self) -> int:  # type: ignore[override]
        return self.self_cpu_memory_usage + sum(one.cpu_memory_usage for one in self.cpu_children)

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(one.cpu_time_total for one in self.cpu_children)

    def __repr__(self) -> str:
        children = [one.id for one in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name= device_type=DeviceType.CPU node_id=-1 "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={children} thread={self.thread} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """All calls of one name together."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.stack: list[str] = []
        self.input_shapes: Any = None
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Add a call, or the sum of several."""
        if not self.count:
            self.key = self.key or other.key
            self.input_shapes, self.is_user_annotation = other.input_shapes, other.is_user_annotation
            self.stack = other.stack
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        shapes = "" if self.input_shapes is None else self.input_shapes
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
            f"self_cuda_time=0.000us cuda_time=0.000us input_shapes={shapes} cpu_memory_usage={self.cpu_memory_usage} "
            "cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """Calls, or sums of calls."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        has_shapes: bool = False,
        profile_memory: bool = False,
        with_flops: bool = False,
        memory: Sequence[Memory] = (),
        origin: int = 0,
    ) -> None:
        super().__init__(events)
        self._has_shapes = has_shapes
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._memory, self._origin = memory, origin

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Return the time of all together."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sum up the calls of each name, or of each name and shapes of inputs, and the last `group_by_stack_n` lines of stacks."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            lines = tuple(event.stack[:group_by_stack_n])
            sums.setdefault((event.key, shapes, lines), FunctionEventAvg()).add(event)
        for (_, _, lines), one in sums.items():
            one.stack = list(lines)
            one.input_shapes = one.input_shapes if group_by_input_shape else ""
        return EventList(
            sums.values(),
            has_shapes=group_by_input_shape and self._has_shapes,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def total_average(self) -> FunctionEventAvg:
        """Sum up all calls."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Write a table, the largest first if a column is named to sort by."""
        rows = list(self)
        if sort_by is not None:
            column = sort_by
            for word in OLD_WORDS:
                column = column.replace(word, "device")
            rows.sort(key=lambda event: getattr(event, column), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        if not rows:
            return ""
        name_width = min(max(len(event.key) for event in rows) + 4, max_name_column_width)
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["CPU Mem", "Self CPU Mem"] if self._profile_memory else []
        titles.append("# of Calls")
        widths = [name_width, *[WIDTH] * (len(titles) - 1)]
        if self._has_shapes:
            titles.append("Input Shapes")
            widths.append(min(max(len(str(event.input_shapes)) for event in rows) + 4, max_shapes_column_width))
        has_stack = any(event.stack for event in rows)
        if has_stack:
            titles.append("Source Location")
            widths.append(min(max(len(one) for event in rows for one in event.stack) + 4, max_src_column_width))
        unit, divisor = _flops_unit(max(event.flops for event in rows))
        if self._with_flops:
            titles.append(f"Total {unit}FLOPs")
            widths.append(WIDTH)
        total = self.self_cpu_time_total
        line = "  ".join("-" * width for width in widths) + "  "
        lines = [line, *([header, line] if header else []), _row(titles, widths), line]
        for event in rows[: None if row_limit < 0 else row_limit]:
            cells = [
                _cut(event.key, max_name_column_width),
                _format_time_share(event.self_cpu_time_total, total),
                event.self_cpu_time_total_str,
                _format_time_share(event.cpu_time_total, total),
                event.cpu_time_total_str,
                event.cpu_time_str,
            ]
            if self._profile_memory:
                cells += [_format_memory(event.cpu_memory_usage), _format_memory(event.self_cpu_memory_usage)]
            cells.append(str(event.count))
            if self._has_shapes:
                cells.append(_cut(str(event.input_shapes), max_shapes_column_width))
            if has_stack:
                cells.append(_end_of(event.stack[0], max_src_column_width) if event.stack else "")
            if self._with_flops:
                cells.append(f"{event.flops / divisor:8.3f}" if event.flops else "--")
            lines.append(_row(cells, widths))
            at = titles.index("Source Location") if has_stack else 0
            for one in event.stack[1:MOST_LINES]:
                lines.append(_row([_end_of(one, widths[k]) if k == at else "" for k in range(len(titles))], widths))
        return "\n".join([*lines, line, f"Self CPU time total: {_format_time(total)}", ""])

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as chrome://tracing and Perfetto read them."""
        process = os.getpid()
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": process,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": {"External id": event.id, **_details(event)},
            }
            for event in self
        ]
        for one in self._memory:  # torch's instants, and a curve of what is held
            at = {"pid": process, "tid": one.thread, "ts": (one.time - self._origin) / 1000}
            instant = {"Total Allocated": one.held, "Bytes": one.bytes, "Device Id": -1, "Device Type": 0}
            events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **at, "args": instant})
            events.append({"ph": "C", "name": "memory of results", **at, "args": {"bytes": one.held}})
        names = [("process_name", process, {"name": "python"})]
        names += [
            ("thread_name", tid, {"name": f"thread {tid}"}) for tid in dict.fromkeys(one["tid"] for one in events)
        ]
        events += [
            {"ph": "M", "name": name, "pid": process, "tid": tid, "ts": 0, "args": args} for name, tid, args in names
        ]
        content = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events, "traceName": str(path)}
        with gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the stacks and a time of each, as programs that draw flame graphs read them."""
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of: {STACK_METRICS}")
        column = metric.replace("cuda", "device").replace("xpu", "device")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, column))
                if event.stack and value > 0:
                    file.write(";".join(one.replace(" ", "_").replace(";", ",") for one in reversed(event.stack)))
                    file.write(f" {value}\n")


STACK_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
MOST_LINES = 5  # of a stack that a table shows


def _details(event: Any) -> dict[str, Any]:
    """Return what a trace tells of an event besides its time."""
    found = {
        "Input Dims": event.input_shapes,
        "Call stack": ";".join(reversed(event.stack)),
        "Flops": event.flops,
        "Bytes": event.cpu_memory_usage,
    }
    return {name: value for name, value in found.items() if value}


def _flops_unit(most: int) -> tuple[str, float]:
    """Return the unit in which torch writes numbers of operations."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if most >= size:
            return unit, size
    return "", 1.0


def _end_of(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[3 - width :]


def _row(cells: list[str], widths: list[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) + "  "


def _cut(text: str, width: int) -> str:
    return text if len(text) < width - 2 else text[: width - 3] + "..."


def events_of(recorder: Recorder) -> EventList:
    """Turn what a recorder took down into events that know who called them."""
    entries, wanted = recorder.entries, recorder.wanted
    origin = entries[0].start if entries else 0
    events = [FunctionEvent(entry, origin) for entry in entries]
    for entry, event in zip(entries, events, strict=True):
        if entry.parent is not None:
            event.cpu_parent = events[entry.parent.index]
            event.cpu_parent.cpu_children.append(event)
    return EventList(
        events,
        has_shapes=wanted.shapes,
        profile_memory=wanted.memory,
        with_flops=wanted.flops,
        memory=recorder.memory,
        origin=origin,
    )


__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]
