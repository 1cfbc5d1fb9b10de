"""Random programs over a pool of tensors.

Lines are written while running them in real torch: the shapes, dtypes and flags of the live tensors steer the
choice of the next line, so that most lines are valid and a deliberate few are not.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import warnings

from hypothesis import strategies as st

from . import autograd_operations, in_place_operations, view_operations  # noqa: F401 - they add to OPERATIONS
from .building import Builder, Chooser
from .operations import OPERATIONS, make_leaf
from .steps import Program, Step, close

NAMES = tuple(OPERATIONS)
TOTALS = tuple(itertools.accumulate(weight for weight, _ in OPERATIONS.values()))


def add_random_step(builder: Builder, skipped: frozenset[str]) -> None:
    for _attempt in range(8):
        name = NAMES[bisect.bisect_right(TOTALS, builder.integer(0, TOTALS[-1] - 1))]
        if name in skipped:
            continue
        made = OPERATIONS[name][1](builder)
        if made is not None:
            builder.emit(made if isinstance(made, Step) else Step(name, made))
            return


def build(chooser: Chooser, skipped: frozenset[str] = frozenset()) -> Program:
    """Write one random program without the skipped operations."""
    builder = Builder(chooser, watched=not chooser.chance(30))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(chooser.integer(1, 2)):
                builder.emit(make_leaf(builder, differentiable=True))
            for _ in range(chooser.integer(2, 18)):
                add_random_step(builder, skipped)
            while builder.open_guards:
                builder.emit(Step("exit", "", exits=builder.open_guards[-1]))
            if chooser.chance(75) and "backward" not in skipped:
                # Most wrong states show only in the gradients.
                closing = OPERATIONS["backward"][1](builder)
                if closing is not None:
                    builder.emit(Step("backward", str(closing)))
    finally:
        close(builder.guard_objects)
    return Program(tuple(builder.steps), builder.watched)


def random_program(seed: int | str, skipped: frozenset[str] = frozenset()) -> Program:
    return dataclasses.replace(build(Chooser(seed), skipped), seed=str(seed))


def programs(skipped: frozenset[str] = frozenset()) -> st.SearchStrategy[Program]:
    """Hypothesis draws only the seed.

    Drawing every decision would let hypothesis shrink, but half of the programs it tries are then repeats,
    and reporting.Reducer, which works on the written lines, gets further in a fraction of the time.
    """
    return st.binary(min_size=8, max_size=8).map(lambda seed: random_program(f"h:{seed.hex()}", skipped))
