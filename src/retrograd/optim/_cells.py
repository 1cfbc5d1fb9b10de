"""Cells: arrays with the in-place methods of Tensors that update rules use, and no graph, no version, no allocation.

Note [Cells]
The rule of an optimizer is written once, in methods that Tensors have. It runs on Tensors where something has to follow it
(`differentiable`, half precision, other libraries' arrays), and on cells where it only has to be quick. A cell is a float32 or
float64 array with a room, from which results take their memory. Results are scratch: an operation on scratch writes into it. So a rule
uses a result once, or only through in-place methods and as an argument. A test holds the two forms of every rule equal.
Numbers become 0-d arrays, which NumPy's ufuncs take in a third of the time of Python's numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

add, subtract, multiply, divide = np.add, np.subtract, np.multiply, np.divide
MOST_NUMBERS = 256  # kept by a room; rates that change at every step must not fill the memory


class Room:
    """Scratch arrays of one shape and dtype, and the numbers that meet them."""

    __slots__ = ("dtype", "mask_count", "masks", "numbers", "scratch", "shape", "term", "used")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype
        self.term = np.empty(shape, dtype)  # for what one operation computes on its way
        self.scratch: list[Scratch] = []
        self.masks: list[Any] = []
        self.numbers: dict[float, Any] = {}
        self.used = self.mask_count = 0

    def empty(self) -> None:
        """Make all scratch free again, before a rule runs."""
        self.used = self.mask_count = 0

    def take(self) -> Scratch:
        """Return a free scratch cell."""
        at = self.used
        self.used = at + 1
        if at == len(self.scratch):
            self.scratch.append(Scratch(np.empty(self.shape, self.dtype), self))
        return self.scratch[at]

    def mask(self) -> Any:
        """Return a free array of truths."""
        at = self.mask_count
        self.mask_count = at + 1
        if at == len(self.masks):
            self.masks.append(np.empty(self.shape, bool))
        return self.masks[at]

    def number(self, value: float) -> Any:
        """Return a number as a 0-d array."""
        found = self.numbers.get(value)
        if found is None:
            if len(self.numbers) >= MOST_NUMBERS:
                self.numbers.clear()
            found = self.numbers[value] = np.array(value, self.dtype)
        return found


class Cell:
    """An array that an update rule reads and writes. See Note [Cells]."""

    __slots__ = ("array", "room")

    def __init__(self, array: Any, room: Room) -> None:
        self.array = array
        self.room = room

    def _result(self) -> Cell:
        return self.room.take()

    def _value(self, other: Any) -> Any:
        return other.array if isinstance(other, Cell) else self.room.number(other)

    # ---- in place ----
    def copy_(self, other: Cell) -> Cell:
        self.array[...] = other.array
        return self

    def mul_(self, other: Any) -> Cell:
        multiply(self.array, self._value(other), self.array)
        return self

    def add_(self, other: Cell, alpha: float = 1) -> Cell:
        room, array = self.room, self.array
        if alpha == 1:
            add(array, other.array, array)
        else:
            number = room.numbers.get(alpha)
            add(array, multiply(other.array, room.number(alpha) if number is None else number, room.term), array)
        return self

    def lerp_(self, end: Cell, weight: float) -> Cell:
        room, array = self.room, self.array
        term = room.term
        subtract(end.array, array, term)
        number = room.numbers.get(weight)
        multiply(term, room.number(weight) if number is None else number, term)
        add(array, term, array)
        return self

    def addcmul_(self, one: Cell, other: Cell, value: float = 1) -> Cell:
        self._add_product(one, other, value, self.array)
        return self

    def addcdiv_(self, one: Cell, other: Cell, value: float = 1) -> Cell:
        room, array = self.room, self.array
        term = room.term
        divide(one.array, other.array, term)
        if value != 1:
            number = room.numbers.get(value)
            multiply(term, room.number(value) if number is None else number, term)
        add(array, term, array)
        return self

    def clamp_(self, low: float, high: float) -> Cell:
        np.clip(self.array, low, high, out=self.array)
        return self

    # ---- results ----
    def add(self, other: Any, alpha: float = 1) -> Cell:
        out = self._result()
        value = self._value(other)
        add(self.array, value if alpha == 1 else multiply(value, self.room.number(alpha), self.room.term), out.array)
        return out

    def sub(self, other: Cell) -> Cell:
        out = self._result()
        subtract(self.array, other.array, out.array)
        return out

    def mul(self, other: Any) -> Cell:
        out = self._result()
        multiply(self.array, self._value(other), out.array)
        return out

    def div(self, other: Any) -> Cell:
        out = self._result()
        divide(self.array, self._value(other), out.array)
        return out

    def addcmul(self, one: Cell, other: Cell, value: float = 1) -> Cell:
        out = self._result()
        self._add_product(one, other, value, out.array)
        return out

    def maximum(self, other: Cell) -> Cell:
        out = self._result()
        np.maximum(self.array, other.array, out=out.array)
        return out

    def sqrt(self) -> Cell:
        out = self._result()
        np.sqrt(self.array, out.array)
        return out

    def neg(self) -> Cell:
        out = self._result()
        np.negative(self.array, out.array)
        return out

    def abs(self) -> Cell:
        out = self._result()
        np.abs(self.array, out.array)
        return out

    def sign(self) -> Cell:
        out = self._result()
        np.sign(self.array, out.array)
        return out

    def gt(self, number: float) -> Any:
        return np.greater(self.array, self.room.number(number), self.room.mask())

    def lt(self, number: float) -> Any:
        return np.less(self.array, self.room.number(number), self.room.mask())

    def eq(self, number: float) -> Any:
        return np.equal(self.array, self.room.number(number), self.room.mask())

    def masked_fill(self, mask: Any, value: float) -> Cell:
        out = self._result()
        if out is not self:
            out.array[...] = self.array
        np.copyto(out.array, self.room.number(value), where=mask)
        return out

    def _add_product(self, one: Cell, other: Cell, value: float, out: Any) -> None:
        room = self.room
        term = room.term
        multiply(one.array, other.array, term)
        if value != 1:
            number = room.numbers.get(value)
            multiply(term, room.number(value) if number is None else number, term)
        add(self.array, term, out)


class Scratch(Cell):
    """A result: the operation that uses it overwrites it."""

    __slots__ = ()

    def _result(self) -> Cell:
        return self


__all__ = ["Cell", "Room", "Scratch"]
