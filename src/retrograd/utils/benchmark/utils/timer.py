"""Measuring a statement."""

from __future__ import annotations

import enum
import statistics
import sys
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from ....cuda import is_available, synchronize
from .common import FEW, Measurement, TaskSpec, set_torch_threads

PACKAGE = __name__.partition(".")[0]


def timer() -> float:
    """Return the time, after the GPU has finished its work."""
    if is_available():
        synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, as `timeit.Timer`, with warming up, few threads, and numbers that can be compared."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            if language in (Language.CPP, "cpp", "c++"):
                raise NotImplementedError("Timer: retrograd measures statements in Python only")
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(code).strip("\n") for code in (stmt, setup))
        self._globals = {"torch": sys.modules[PACKAGE]} | (globals or {})
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement so many times, after some to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refuse, as torch: what to do with the numbers would be left to the program."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Refuse, as torch: what to do with the numbers would be left to the program."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Return how often to run the statement between two looks at the clock, so that looking costs little."""
        empty = timeit.Timer(timer=self._timer.timer)  # type: ignore[attr-defined]
        overhead = statistics.median(empty.timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._timeit(number)
            is_enough = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if is_enough or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs until the time is up."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._blocks(number, callback, lambda times: sum(times) >= min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = FEW,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure blocks of runs until the times agree well enough, or the time is up."""

        def is_done(times: list[float]) -> bool:
            spent = sum(times)
            if spent < min_run_time:
                return False
            agrees = Measurement(number, times, self._task_spec).meets_confidence(threshold)
            return spent >= max_run_time or (len(times) > 3 and agrees)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._blocks(number, callback, is_done)

    def _blocks(self, number: int, callback: Any, is_done: Callable[[list[float]], bool]) -> Measurement:
        times: list[float] = []
        while not times or not is_done(times):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, number: int = 100, **options: Any) -> None:
        """Refuse: there is no C++ to count instructions of."""
        raise NotImplementedError(
            "Timer.collect_callgrind: retrograd is Python, whose instructions callgrind does not show"
        )
