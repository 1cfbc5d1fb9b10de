"""What was measured, and what the numbers say."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .... import _settings

UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}
FEW, MANY = 0.1, 0.25  # of the median: an interquartile range to warn of, and one that says little is sure
CLOCK = 25e-9  # seconds below which a difference means nothing
MOST_FIGURES = 4


class TaskSpec:
    """What is measured: a statement, and the words by which a table shows it."""

    def __init__(
        self,
        stmt: str,
        setup: str,
        global_setup: str = "",
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
    ) -> None:
        self.stmt, self.setup, self.global_setup = stmt, setup, global_setup
        self.label, self.sub_label, self.description = label, sub_label, description
        self.env, self.num_threads = env, num_threads

    def _key(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def title(self) -> str:
        """Return the label, or the statement, and what distinguishes it."""
        name = self.label or _block("stmt", self.stmt, alone=True)
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """Return the setup, if it does anything."""
        return "" if self.setup in ("", "pass") else _block("setup", self.setup)

    def summarize(self) -> str:
        """Return a summary of the task."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


def _block(name: str, code: str, alone: bool = False) -> str:
    if "\n" in code:
        return f"{name}:\n{textwrap.indent(code, '  ')}"
    return code if alone else f"{name}: {code}"


class Measurement:
    """Times of one task: each of `raw_times` is that of `number_per_run` runs."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict[Any, Any] | None = None
    ) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(TaskSpec, name):  # methods and properties
            return getattr(self.task_spec, name)
        spec = self.__dict__.get("task_spec")
        if spec is not None and name in vars(spec):
            return vars(spec)[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Return the seconds of one run in each measurement."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """Return the middle of the times."""
        return float(np.median(self.times))

    @property
    def mean(self) -> float:
        """Return the average of the times."""
        return float(np.mean(self.times))

    @property
    def _quarters(self) -> tuple[float, float]:
        low, high = np.quantile(self.times, [0.25, 0.75])
        return float(low), float(high)

    @property
    def iqr(self) -> float:
        """Return how far the middle half of the times spreads."""
        low, high = self._quarters
        return high - low

    @property
    def significant_figures(self) -> int:
        """Return how many digits of the median mean something."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        uncertain = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), CLOCK)
        return min(max(math.floor(-math.log10(uncertain / self.median)), 1), MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Tell whether the times spread too far."""
        return not self.meets_confidence(FEW)

    def meets_confidence(self, threshold: float = FEW) -> bool:
        """Tell whether the middle half of the times spreads less than a part of the median."""
        return self.iqr / self.median < threshold

    @property
    def as_row_name(self) -> str:
        """Return the name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count > 3:
            low, high = self._quarters
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement' if count > 1 else ''}"
        threads = f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {threads}")
        if self.has_warnings:
            share = f"{self.iqr / self.median * 100:.1f}%"
            lines.append(f"  WARNING: Interquartile range is {share} of the median measurement.")
            unsure = not self.meets_confidence(MANY)
            why = "suggests significant environmental influence" if unsure else "could indicate system fluctuation"
            lines.append(f"           This {why}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Put the times of equal tasks together."""
        groups: dict[TaskSpec, list[float]] = {}
        for one in measurements:
            groups.setdefault(one.task_spec, []).extend(one.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time reads best, and its size in seconds."""
    power = math.floor(math.log10(t) / 3)
    unit = {-1: "ms", -2: "us", -3: "ns"}.get(power, "s")
    return unit, UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """Return the word for a unit."""
    return UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """Round to some significant figures."""
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return every element once, in the order in which they come."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with a number of threads in a block."""
    before = _settings.get_num_threads()
    _settings.set_num_threads(n)
    try:
        yield
    finally:
        _settings.set_num_threads(before)
