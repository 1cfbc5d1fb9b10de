"""Levels: the numbers that tell nested transforms apart, and the stack of the transforms now running."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from .._modes import Block, Entry, current_mode, push, write

BATCH = "vmap"
DUAL = "jvp"

_numbers = itertools.count(1)
creation_numbers = itertools.count(1).__next__


class Level:
    """One live or dead transform that gives arrays a type of their own.

    Numbers are never reused; the largest is the outermost array type, which is the innermost transform.
    """

    __slots__ = ("alive", "alone", "kind", "number", "randomness", "size")

    def __init__(self, kind: str, size: int = 0, randomness: str = "error") -> None:
        self.number = next(_numbers)
        # The levels of an array that has no other; None once the transform has ended, because it is a cycle.
        self.alone: frozenset[Level] | None = frozenset((self,))
        self.kind = kind
        self.size = size
        self.randomness = randomness
        self.alive = True

    def __repr__(self) -> str:
        return f"<{self.kind} level {self.number}{'' if self.alive else ', ended'}>"


class UserLevel(Level):
    """A level that `forward_ad` began: to torch its duals are tensors like others, with memory of their own."""

    __slots__ = ("ended_by_call",)

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.ended_by_call = False


class Transform:
    """An entry of the stack of live transforms: what operations need to know that cannot be seen on their arguments."""

    __slots__ = ("alive", "born", "kind", "level")

    def __init__(self, kind: str, level: Level | None) -> None:
        self.alive = True
        self.kind = kind
        self.level = level
        self.born = creation_numbers()


class running(Block):  # noqa: N801 - reads as a word
    """Keep a transform on the stack while its function runs; its level is dead afterwards, whatever happens."""

    def __init__(self, kind: str, level: Level | None = None, **mode: Any) -> None:
        self.transform = Transform(kind, level)
        self.changes = mode
        self._block_fields = ("transforms", *mode)

    def __enter__(self) -> Transform:
        before = current_mode()
        entered = before._replace(transforms=(*before.transforms, self.transform), **self.changes)
        level = self.transform.level
        owners = (self.transform,) if level is None else (self.transform, level)
        ends = tuple([partial(setattr, one, "alive", False) for one in owners])
        entry = self._block_entry_with(ends, before, entered)
        write[entered]
        push[entry]
        return self.transform

    def _block_goes_on(self, entry: Entry) -> None:
        self.transform.alive = True
        if self.transform.level is not None:
            self.transform.level.alive = True

    def _block_ended(self, entry: Entry) -> None:
        if self.transform.level is not None:
            self.transform.level.alone = None


def batch_levels() -> list[Level]:
    """Return the levels of the vmaps that are running, the innermost first."""
    levels = [one.level for one in reversed(current_mode().transforms)]
    return [level for level in levels if level is not None and level.kind == BATCH]


def innermost_batch_level() -> Level | None:
    """Return the level of the innermost vmap that is running, if any."""
    for transform in reversed(current_mode().transforms):
        if transform.level is not None and transform.level.kind == BATCH:
            return transform.level  # type: ignore[no-any-return]
    return None
