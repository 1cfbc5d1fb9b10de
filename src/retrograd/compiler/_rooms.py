"""Rooms: where the values of a kernel lie, so that little memory does for all of them.

A value needs its room from the first stage that touches it to the last. One that takes the place of another which ends where it begins
(`_follows`) shares the room of that. Rooms lie in the arena, in the memory of results that are not made yet, or in that of inputs
that nobody reads any more: large ones choose first, the arena is the last choice.
"""

from __future__ import annotations

import enum
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._nests import Access, Nest
from ._products import ProductStage
from ._program import Buffer, Value

ALIGNED = 64
WORTH_JOINING = 4096  # bytes: in less, a load soon waits for the store just before it, and little is won
EVER = 1 << 60


class Kind(enum.Enum):
    """What a value is to others."""

    BETWEEN = "nobody else sees it"
    MADE = "others read it"
    RESULT = "the program hands it out: its memory is new"
    ENDING = "it is an input that nobody reads afterwards"


@dataclass(slots=True, eq=False)
class _Room:
    """Values that have the same place one after the other, and when they need it."""

    values: list[Value]
    begin: int
    end: int
    home: Buffer | None  # memory that the first or the last of them has of its own
    size: int


@dataclass(slots=True)
class _Memory:
    """Memory in which rooms lie: its size, and when which part of it is taken."""

    size: int
    taken: list[tuple[int, int, int, int]] = field(default_factory=list)  # from where, to where, begin, end; in order

    def place(self, room: _Room) -> int | None:
        """Take the first part that is free for a room, and return where it begins; None if there is none."""
        if room.size > self.size:
            return None
        at = 0
        for low, high, begin, end in self.taken:
            if begin <= room.end and room.begin <= end:
                if at + room.size <= low:
                    break
                at = max(at, -(-high // ALIGNED) * ALIGNED)
        if at + room.size > self.size:
            return None
        insort(self.taken, (at, at + room.size, room.begin, room.end))
        return at


class Rooms:
    """Finds room for values. `times` are those of stages, `users` the stages that touch memory, `accesses` what their bodies go over."""

    def __init__(
        self,
        stages: Sequence[Any],
        accesses: Sequence[list[list[Access]]],
        times: Sequence[int],
        users: dict[Buffer, set[int]],
    ) -> None:
        self.stages, self.accesses, self.times, self.users = stages, accesses, times, users
        self.rooms: dict[Buffer, _Room] = {}
        self.kinds: dict[Buffer, Kind] = {}
        self.taken: dict[Buffer, Value] = {}

    def add(self, value: Value, kind: Kind) -> None:
        """Let a value have room; those that are there before the kernel come first."""
        at = [self.times[one] for one in self.users[value.buffer]]
        begin = -1 if kind is Kind.ENDING else min(at)
        end = EVER if kind in (Kind.MADE, Kind.RESULT) else max(at)
        home = None if kind is Kind.BETWEEN else value.buffer
        self.rooms[value.buffer] = _Room([value], begin, end, home, value.size * value.dtype.itemsize)
        self.kinds[value.buffer] = kind

    def arranged(self) -> tuple[int, dict[Buffer, tuple[Buffer | None, int]], dict[Buffer, Value]]:
        """Return the size of the arena; for values that lie elsewhere than in memory of their own, or in none, that (None for the
        arena) and where; and the inputs in whose memory results are made.
        """
        ends: dict[int, list[_Room]] = {}  # rooms by their ends
        for room in self.rooms.values():
            ends.setdefault(room.end, []).append(room)
        for room in sorted(self.rooms.values(), key=lambda one: (one.begin, -one.size)):
            self._join(room, ends)
        rooms = sorted(dict.fromkeys(self.rooms.values()), key=lambda one: (-one.size, one.begin))
        memories: dict[Buffer | None, _Memory] = {}
        for room in rooms:
            if room.home is not None:
                memories[room.home] = _Memory(room.size, [(0, room.size, room.begin, room.end)])
        arena = memories[None] = _Memory(EVER)
        offsets: dict[Buffer, tuple[Buffer | None, int]] = {}
        for room in rooms:
            home, at = room.home, 0
            if home is None:
                places = ((one, memory.place(room)) for one, memory in memories.items())
                home, at = next((one, place) for one, place in places if place is not None)
            for value in room.values:
                if value.buffer is not home and value.buffer not in self.taken:
                    offsets[value.buffer] = home, at
        return max([max(high, 1) for _, high, *_ in arena.taken], default=0), offsets, self.taken

    # ---- one in the place of another ----
    def _join(self, room: _Room, ends: dict[int, list[_Room]]) -> None:
        """Let a value take the place of one that ends where it begins, if there is one."""
        value, *others = room.values
        for other in ends.get(room.begin, ()) if room.size >= WORTH_JOINING and not others else ():
            last = other.values[-1]
            ends_here = other.end == room.begin and self.rooms[last.buffer] is other
            if not ends_here or other.size != room.size or not self._follows(value, last):
                continue
            if room.home is not None and other.home is not None:
                if not self._is_the_same(value, last):
                    continue
                self.taken[value.buffer] = last
            other.values.append(value)
            other.end, other.home = room.end, other.home or room.home
            ends.setdefault(other.end, []).append(other)
            self.rooms[value.buffer] = other
            return

    def _is_the_same(self, value: Value, before: Value) -> bool:
        """Tell whether an input can be handed on as a result."""
        if self.kinds[value.buffer] is not Kind.MADE or self.kinds[before.buffer] is not Kind.ENDING:
            return False
        return (value.shape, value.strides, value.dtype) == (before.shape, before.strides, before.dtype)

    def _follows(self, value: Value, before: Value) -> bool:
        """Tell whether one stage makes a value where it reads another for the last time: each element at the turn that reads that one."""
        when = self.rooms[value.buffer].begin
        stages = [
            at for at in sorted({*self.users[value.buffer], *self.users[before.buffer]}) if self.times[at] == when
        ]
        if len(stages) != 1 or not isinstance(stage := self.stages[stages[0]], (Nest, ProductStage)):
            return False
        if isinstance(stage, ProductStage) and before.buffer in (stage.x.value.buffer, stage.y.value.buffer):
            return False
        for body in self.accesses[stages[0]]:
            writes = [at for at, one in enumerate(body) if one.buffer is value.buffer and one.writes]
            touches = [at for at, one in enumerate(body) if one.buffer is before.buffer]
            places = {body[at].place for at in (*writes, *touches)}
            if not writes or not touches or len(places) > 1 or max(touches) > min(writes):
                return False
        return True
