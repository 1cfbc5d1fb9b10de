"""Timing two libraries side by side in one process, as ratios with their spread.

Absolute times on a shared machine mean little; a ratio of two things measured in turns means something.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass

REST = 0.25  # seconds until the threads of one library have stopped looking for work, with some to spare


@dataclass
class Row:
    """One question: how many times quicker ours is than theirs (above 1 is quicker)."""

    name: str
    ratio: float
    low: float
    high: float
    ours_us: float
    theirs_us: float

    @classmethod
    def of(cls, name: str, ours: list[float], theirs: list[float]) -> Row:
        """Make a row from the seconds of adjacent runs: the middle of their ratios, the middle half, the best times."""
        ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
        quarter = len(ratios) // 4
        middle = statistics.median(ratios)
        return cls(name, middle, ratios[quarter], ratios[-1 - quarter], min(ours) * 1e6, min(theirs) * 1e6)

    def __str__(self) -> str:
        return (
            f"{self.name:<46} {self.ratio:5.2f} x   ({self.low:.2f} to {self.high:.2f})   "
            f"best {self.theirs_us / self.ours_us:5.2f} x: {self.ours_us:9.2f} us against {self.theirs_us:9.2f} us"
        )


def compare(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 15, rest: float = 0.0
) -> Row:
    """Time both in turns, in this process.

    `rest` is how many seconds to wait before each is timed. The threads of a library look for work for 30 to 100 ms after its
    last operation, and take a core from the other meanwhile: where operations use several threads, REST is enough.
    """
    ours(), theirs()  # warm up
    number = max(1, int(0.02 / max(timeit.timeit(theirs, number=3) / 3, 1e-7)))
    ours_seconds, theirs_seconds = [], []
    for _ in range(rounds):
        gc.collect()
        ours_seconds.append(_rested(ours, number, rest))
        theirs_seconds.append(_rested(theirs, number, rest))
    return Row.of(name, ours_seconds, theirs_seconds)


def _rested(function: Callable[[], object], number: int, rest: float) -> float:
    """Return the time of a call, after a rest and one call that wakes what it needs."""
    if rest:
        time.sleep(rest)
        function()
    return timeit.timeit(function, number=number) / number


def report(title: str, rows: list[Row]) -> None:
    """Print a table, or JSON with --json."""
    if "--json" in sys.argv:
        print(json.dumps({"title": title, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(title)
    for row in rows:
        print("  " + str(row))
