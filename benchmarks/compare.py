"""Timing two libraries side by side: interleaved in one run, as ratios with their spread.

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

    def __str__(self) -> str:
        return (
            f"{self.name:<44} {self.ratio:5.2f} x   ({self.low:.2f} to {self.high:.2f})   "
            f"{self.ours_us:9.2f} us against {self.theirs_us:9.2f} us"
        )


def compare(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 15, rest: float = 0.0
) -> Row:
    """Time both in turns; the middle of the ratios of adjacent runs, and their middle half.

    `rest` is how many seconds to wait before each is timed. The threads of a library look for work for 30 to 100 ms after its
    last operation, and take a core from the other meanwhile: where operations use several threads, REST is enough.
    """
    ours(), theirs()  # warm up
    number = max(1, int(0.02 / max(timeit.timeit(theirs, number=3) / 3, 1e-7)))
    pairs = []
    for _ in range(rounds):
        gc.collect()
        a, b = (_rested(function, number, rest) for function in (ours, theirs))
        pairs.append((b / a, a, b))
    ratios = sorted(r for r, _, _ in pairs)
    quarter = len(ratios) // 4
    return Row(
        name,
        statistics.median(ratios),
        ratios[quarter],
        ratios[-1 - quarter],
        statistics.median(a for _, a, _ in pairs) * 1e6,
        statistics.median(b for _, _, b in pairs) * 1e6,
    )


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
