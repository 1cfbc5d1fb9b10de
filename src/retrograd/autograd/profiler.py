"""torch.autograd.profiler: how long operations, backward nodes and named blocks take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Self

from .._absent import finder
from ._observing import Profiling
from ._profiling import Entry, Recorder, Wanted
from .profiler_util import EventList, FunctionEventAvg, events_of

__getattr__ = finder("torch.autograd.profiler")

__all__ = ["emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]


def _profiler_enabled() -> bool:
    """Tell whether a profile is being taken."""
    return Profiling.running is not None


def kineto_available() -> bool:
    """Tell whether torch's profiling library is there: it is not."""
    return False


class EnforceUnique:
    """Raises an error when a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps by who reports them; the step of all is the largest."""

    _current_step = 0
    _step_dict: ClassVar[dict[str, int]] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for somebody, at the step of all."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Count no more for somebody; tell whether it was counted."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of somebody, and return the step of all."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Return the step of all."""
        return cls._current_step


class _Context:
    """A block, or a decorator, that changes nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


class record_function(_Context):  # noqa: N801
    """Name a block of code for the profiler."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._entered: list[tuple[Recorder | None, Entry | None]] = []  # a decorated function may call itself

    def __enter__(self) -> Self:
        recorder = Profiling.running
        self._entered.append((recorder, None if recorder is None else recorder.begin(self.name)))
        return self

    def __exit__(self, *exc: object) -> None:
        recorder, entry = self._entered.pop()
        if recorder is not None and entry is not None:
            recorder.end(entry)


class emit_nvtx(_Context):  # noqa: N801
    """Accepted; no ranges are written."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled


class emit_itt(emit_nvtx):  # noqa: N801
    """Accepted; no ranges are written."""


class profile:  # noqa: N801
    """Record what happens in a block."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **others: Any,
    ) -> None:
        self.enabled = enabled
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.function_events: EventList | None = None
        self._recorder: Recorder | None = None

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self._recorder is not None:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._recorder = Recorder(Wanted(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops))
        self._recorder.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recorder is not None:
            self._recorder.stop()
            self.function_events = events_of(self._recorder)

    def _need_events(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    @property
    def self_cpu_time_total(self) -> float:
        """Return the time of all together, in microseconds."""
        return self._need_events().self_cpu_time_total

    def events(self) -> EventList:
        """Return the calls."""
        return self._need_events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sum up the calls of each name."""
        return self._need_events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Sum up all calls."""
        return self._need_events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Write a table of the calls."""
        return self._need_events().table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as chrome://tracing and Perfetto read them."""
        self._need_events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks and a time of each, as programs that draw flame graphs read them."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self._need_events().export_stacks(path, metric)
