"""How much memory tensors take at each moment: arrays are watched by weak references, which keep none of them alive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import ref

from ._saved_bytes import owners_of
from ._trace import Value

NOBODY = -1


@dataclass(slots=True)
class Piece:
    """Memory that arrays share."""

    watching: Any
    bytes: int
    maker: int = NOBODY  # the operation that made it, or has written into it since
    counted: bool = False  # as saved for backward, or as a leaf's, which is there in any case
    values: list[Value] = field(default_factory=list)


class Memory:
    """The memory of all arrays that were shown to it. What several views share counts once."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.live = 0  # bytes
        self.is_closed = False  # whether the recording has ended, so that what is freed now is none of its business
        self._clock = clock
        self._pieces: dict[int, Piece] = {}  # by the id of the array that owns it

    def watch(self, array: Any, value: Value | None = None) -> None:
        """Count the memory of an array until it is freed, and note in `value` when that was."""
        for piece in self._pieces_of(array):
            if value is not None:
                piece.values.append(value)

    def set_maker(self, array: Any, operation: int, *, written: bool) -> None:
        """Note which operation has made the memory of an array, or has written into it."""
        for piece in self._pieces_of(array):
            if written or piece.maker == NOBODY:
                piece.maker = operation

    def count(self, array: Any) -> bool:
        """Tell whether memory of an array is counted for the first time."""
        new = [piece for piece in self._pieces_of(array) if not piece.counted]
        for piece in new:
            piece.counted = True
        return bool(new)

    def maker(self, array: Any) -> int:
        """Return the operation that was the last to make or write the memory of an array."""
        known = [self._pieces.get(id(owner)) for owner in owners_of(array)]
        return max((piece.maker for piece in known if piece is not None), default=NOBODY)

    def _pieces_of(self, array: Any) -> list[Piece]:
        found = []
        for owner in owners_of(array):
            if (piece := self._pieces.get(id(owner))) is None:
                try:
                    piece = Piece(ref(owner, partial(self._freed, id(owner))), owner.nbytes)
                except TypeError:  # NumPy's scalars, which take no memory of their own
                    continue
                self._pieces[id(owner)] = piece
                self.live += piece.bytes
            found.append(piece)
        return found

    def _freed(self, key: int, _: Any) -> None:
        piece = self._pieces.pop(key)
        self.live -= piece.bytes
        for value in piece.values if not self.is_closed else ():
            value.freed = self._clock()
