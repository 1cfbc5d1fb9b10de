"""Plans on large arrays: in blocks, on several threads, with scratch memory that is there for the next step.

Note [Blocks]
NumPy's calls let other threads run, but each begins and ends with Python's lock. Where calls are short, a thread often finds it taken and
sleeps longer than its call takes: with blocks of 2^16 elements two threads are slower than one. So blocks are larger than the second
cache, though the passes of a plan over one block find it in the third. All blocks of a step are one list, from which threads take one after
another: one that comes late finds fewer, and nobody waits where one parameter ends and the next begins.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .. import _thresholds
from .._core.parallel import over_blocks
from ._plan import Plan

BLOCK = _thresholds.STEP_BLOCK


class Workspace:
    """Scratch memory for plans: rows of which each plan takes the beginnings, so that they stay in the caches."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[tuple[Any, int], Any] = {}

    def take(self, plan: Plan, dtype: Any, size: int) -> list[Any]:
        """Return the scratch and the masks that a plan needs."""
        needed = [(dtype, k) for k in range(plan.scratch)] + [(bool, k) for k in range(plan.masks)]
        for name in needed:
            if name not in self.rows:
                self.rows[name] = np.empty(BLOCK, name[0])
        return [self.rows[name][:size] for name in needed]


class Update(NamedTuple):
    """A plan that waits for its run on large arrays."""

    plan: Plan
    rows: list[Any]  # the parameter, the gradient and the buffers
    values: list[Any]
    span: tuple[int, int]  # the parameter's place in memory


def span_of(array: Any) -> tuple[int, int]:
    """Return where an array's memory begins and ends."""
    start: int = array.ctypes.data
    return start, start + array.nbytes


_free: list[Workspace] = []  # for blocks; a thread takes one and puts it back


def run_updates(waiting: list[Update]) -> None:
    """Update large parameters block by block, on several threads; one after another if some share memory."""
    spans = sorted(one.span for one in waiting)
    if any(after[0] < before[1] for before, after in pairwise(spans)):
        for one in waiting:
            _in_blocks([one])
    else:
        _in_blocks(waiting)


def _in_blocks(waiting: list[Update]) -> None:
    blocks = [(one, start, end) for one in waiting for start, end in pairwise(_cuts(one.rows[0].size))]

    def work(at: int, _end: int) -> None:
        (plan, rows, values, _span), start, end = blocks[at]
        try:
            workspace = _free.pop()
        except IndexError:
            workspace = Workspace()
        scratch = workspace.take(plan, rows[0].dtype, end - start)
        plan.run(*[row[start:end] for row in rows], *scratch, *values)
        _free.append(workspace)

    over_blocks(work, len(blocks), 1, True)


def _cuts(size: int) -> list[int]:
    """Return where the blocks of a large parameter begin and end: two or more, of the same size."""
    count = max(2, -(-size // BLOCK))
    return [size * k // count for k in range(count + 1)]
