"""torch.profiler.profiler: what a program does in each of its steps, and how long it takes."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Self

from ..autograd import profiler as _contexts
from ..autograd.profiler import record_function
from ..autograd.profiler_util import EventList

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What could be measured.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU, XPU, CUDA, HPU, MTIA, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """What a schedule asks for at a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE, DEVICE_STOPPED = range(5)


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that may be asked for."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a function that says what to do at each step: wait, warm up, record, and so on from the beginning."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Return a handler for `on_trace_ready` that writes a trace into a folder."""

    def handler(prof: Any) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(str(folder / f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"))

    return handler


def _default_schedule_fn(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:  # noqa: N801
    """Record what happens in a block, or in those of its steps that a schedule names.

    Args:
        activities: accepted; the CPU is measured
        schedule: says which steps are recorded: `torch.profiler.schedule(...)`
        on_trace_ready: called with the profile when steps are recorded
        record_shapes: note the shapes of arguments
        profile_memory: note how much memory is made and freed
        with_stack: note the lines of the program
        with_flops: estimate floating-point operations
        with_modules: accepted
        acc_events: keep the events of all cycles

    A first run may compile kernels, which counts as the time of the operations that need them: warm up first, as a schedule does.

    Example:
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.ones(3).exp()
        >>> "aten::exp" in {event.key for event in prof.key_averages()}
        True
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
        **others: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        self.record_steps = schedule is not None
        self.schedule = schedule or _default_schedule_fn
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: Any = None
        self.step_rec_fn: Any = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        if self.current_action in RECORDING:
            self._start_trace()
        self._begin_step()

    def stop(self) -> None:
        """End; what was recorded is handed to `on_trace_ready`."""
        self._end_step()
        if self.current_action in RECORDING:
            self._stop_trace()
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """Say that a step of the program is over, and the next one begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (before in RECORDING and self.current_action not in RECORDING):
            self._stop_trace()
            before = ProfilerAction.NONE
        if before not in RECORDING and self.current_action in RECORDING:
            self._start_trace()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _start_trace(self) -> None:
        self.profiler = _contexts.profile(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
        )
        self.profiler.__enter__()

    def _stop_trace(self) -> None:
        self.profiler.__exit__(None, None, None)
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _recorded(self, purpose: str) -> Any:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    # ---- what was recorded ----
    def events(self) -> EventList:
        """Return the calls."""
        found: EventList = self._recorded("accessing events").events()
        return found

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sum up the calls of each name."""
        found: EventList = self._recorded("getting key averages").key_averages(group_by_input_shape, group_by_stack_n)
        return found

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as chrome://tracing and Perfetto read them."""
        self._recorded("exporting chrome trace").export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks and a time of each, as programs that draw flame graphs read them; needs `with_stack=True`."""
        self._recorded("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Refuse: torch tells memory by categories, which are not known here."""
        raise NotImplementedError(
            "profile.export_memory_timeline: retrograd does not tell memory by categories\nHint: with profile_memory=True, "
            "export_chrome_trace writes the memory that is held over time, and retrograd.debug.saved_bytes says what is kept for "
            "backward."
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Accept a note, which is not kept."""

    add_metadata_json = preset_metadata_json = add_metadata
