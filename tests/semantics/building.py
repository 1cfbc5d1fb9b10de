"""Random decisions, and the state of a program while it is being written."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import torch

from .steps import Step, execute, fresh_namespace

Choice = TypeVar("Choice")
Condition = Callable[[torch.Tensor], bool]

LARGEST_TENSOR = 48  # elements; small tensors keep thousands of programs within a minute
LARGEST_POOL = 9
TAME = 30.0  # magnitudes above this go into no further growing function: rounding would be amplified


class Chooser:
    """Source of all random decisions of one program."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed).random

    def integer(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def choose(self, options: Sequence[Choice]) -> Choice:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.random() * 100 < percent


def is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def is_tame(tensor: torch.Tensor, limit: float = TAME) -> bool:
    """Whether a growing function of this tensor stays in a range where rounding differences stay small."""
    if tensor.numel() == 0 or tensor.dtype == torch.bool:
        return True
    try:
        low, high = torch.aminmax(tensor.detach())
    except RuntimeError:  # a view that torch forbids to use since its base was modified
        return False
    return bool(-limit <= low.item() and high.item() <= limit)


def is_exact(value: float) -> bool:
    """Whether this number is a small multiple of a power of two, on which all libraries agree to the bit."""
    return not math.isfinite(value) or (value * 1024).is_integer()


def is_clear_cut(*tensors: torch.Tensor) -> bool:
    """Whether rounding cannot decide how these numbers compare with each other or with -1, 0 and 1.

    Comparisons, maxima, sorting, relu, square roots near 0 and the like turn a difference in the last bit
    into a visible one; they are only applied where each number is exact or far from all others.
    """
    inexact: list[float] = []
    points = {-1.0, 0.0, 1.0}
    for tensor in tensors:
        if not tensor.is_floating_point():
            continue
        try:
            values = tensor.detach().flatten().tolist()
        except RuntimeError:  # a view that torch forbids to use since its base was modified
            return False
        for value in values:
            if is_exact(value):
                points.add(value)
            else:
                inexact.append(value)
    if not inexact:
        return True
    ordered = sorted([*inexact, *(point for point in points if math.isfinite(point))])
    return all(upper - lower > 1e-3 or (lower in points and upper in points) for lower, upper in pairwise(ordered))


def holds(condition: Condition | None, tensor: torch.Tensor) -> bool:
    try:
        return condition is None or condition(tensor)
    except RuntimeError:  # torch refuses to answer ``is_leaf`` of some views whose base was modified
        return False


@dataclass
class Builder:
    """The program so far and the torch state it leads to."""

    chooser: Chooser
    watched: bool = True
    steps: list[Step] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=lambda: fresh_namespace(torch))
    open_guards: list[str] = field(default_factory=list)
    guard_objects: list[Any] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.choose = self.chooser.choose
        self.chance = self.chooser.chance
        self.integer = self.chooser.integer

    # -- names ------------------------------------------------------------------------------------------

    def new_name(self, prefix: str = "t") -> str:
        number = self.counters.get(prefix, 0)
        self.counters[prefix] = number + 1
        return f"{prefix}{number}"

    def new_names(self, count: int) -> str:
        """Targets of an assignment that unpacks ``count`` tensors."""
        names = [self.new_name() for _ in range(count)]
        return ", ".join(names) + ("," if count == 1 else "")

    def get(self, name: str) -> torch.Tensor:
        return self.namespace[name]

    def tensors(self, suitable: Condition | None = None) -> list[str]:
        """Names of the live tensors that satisfy the condition, oldest first."""
        return [
            name
            for name, value in self.namespace.items()
            if name[0] == "t" and type(value) is torch.Tensor and holds(suitable, value)
        ]

    def handles(self) -> list[str]:
        return [name for name in self.namespace if name.startswith("handle")]

    def has_room(self) -> bool:
        return len(self.tensors()) < LARGEST_POOL

    def tensor(self, suitable: Condition | None = None, percent_any: int = 0) -> str | None:
        """A suitable tensor; now and then any tensor at all, to reach the error messages."""
        names = self.tensors()
        if not names:
            return None
        # Half the time one of the newest: chains of operations say more than many first steps.
        oldest = max(0, len(names) - 3) if self.chance(50) else 0
        start = self.integer(oldest, len(names) - 1)
        if suitable is None or (percent_any and self.chance(percent_any)):
            return names[start]
        # Looking on from a random place tests fewer tensors than filtering first.
        candidates = names[start:] + names[:start]
        return next((name for name in candidates if holds(suitable, self.namespace[name])), None)

    # -- literals ---------------------------------------------------------------------------------------

    def scalar(self) -> str:
        return self.choose(("2", "0.5", "-1.5", "3", "-1", "1", "0", "0.25"))

    def dimension(self, rank: int) -> int:
        """A valid dimension, often negative; now and then one that does not exist."""
        if self.chance(2):
            return rank + 1
        extent = max(rank, 1)
        dim = self.integer(0, extent - 1)
        return dim - extent if self.chance(40) else dim

    def position(self, size: int) -> int:
        """An index into a dimension of that size; now and then out of range."""
        if size == 0 or self.chance(2):
            return size
        index = self.integer(0, size - 1)
        return index - size if self.chance(35) else index

    def slice_of(self, size: int) -> str:
        start, stop = sorted((self.integer(0, size), self.integer(0, size)))
        return self.choose((f"{start}:", f":{stop}", f"{start}:{stop}", "::2", f"{start}::2", ":", "-1:"))

    # -- emitting ---------------------------------------------------------------------------------------

    def emit(self, step: Step) -> None:
        """Append the step and run it in torch, where it may well raise."""
        self.steps.append(step)
        execute(step, self.namespace, self.guard_objects)
        if step.enters:
            self.open_guards.append(step.enters)
        elif step.exits:
            self.open_guards.pop()
