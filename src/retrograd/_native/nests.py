"""Loop nests written by hand, for what no formula describes: windows, gathers, scatters.

A nest is a Python function that is run once, with a `Nest`: what it does to values is written down as steps and loops (`loops`).
Python's own loops are unrolled, `Nest.loop` makes loops of the kernel. Whole numbers are Python's where they are known, values where
they come with a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from struct import pack
from typing import Any, Final

import numpy as np

from .. import _thresholds
from .._settings import get_num_threads
from . import machine
from .expression import I64
from .loops import Carried, Function, Loop, Step
from .threads import alone, share
from .trace import STORAGE

NDARRAY = np.ndarray
LANES: Final = 16  # numbers to which rows are filled up
KNOWN: Final = 48  # numbers of a row up to which their count is part of the kernel
DATA: Final = object.__basicsize__  # where an array keeps the address of its memory
NATIVE: Final = _thresholds.NATIVE
FLOATING: Final = frozenset(dtype for dtype, storage in STORAGE.items() if "f" in storage)


class Value:
    """What a step computes, with Python's operators."""

    __slots__ = ("nest", "step")

    def __init__(self, nest: Nest, step: Any) -> None:
        self.nest, self.step = nest, step

    @property
    def type(self) -> str:
        return self.step.type  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Any:
        return self if type(other) is int and other == 0 else self.nest.of("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self if type(other) is int and other == 0 else self.nest.of("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.nest.of("sub", self.nest.constant(other, self.type), self)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int and other in (0, 1):
            return self if other else 0
        return self.nest.of("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.nest.of("div", self, other)

    def __floordiv__(self, other: Any) -> Any:
        return self.nest.of("udiv", self, other)

    def __mod__(self, other: Any) -> Any:
        return self.nest.of("urem", self, other)


class Nest:
    """Writes down one kernel. `pointers` and `sizes` are read in the order in which a call gives them."""

    def __init__(self) -> None:
        self.body: list[Any] = []
        self.at = self.body
        self.counts = {"pointer": 0, "size": 0}

    # ---- arguments ----
    def _argument(self, kind: str, type: str) -> Value:
        number = self.counts[kind]
        self.counts[kind] += 1
        return self._write(Step(kind, type, (), number))

    def pointer(self) -> Value:
        """Return the next array of a call."""
        return self._argument("pointer", "ptr")

    def size(self) -> Value:
        """Return the next number of a call."""
        return self._argument("size", I64)

    def sizes(self, count: int) -> list[Value]:
        """Return the next numbers of a call."""
        return [self.size() for _ in range(count)]

    def items(self) -> tuple[Value, Value]:
        """Return the range of items that a call takes."""
        return self._write(Step("bound", I64, (), 0)), self._write(Step("bound", I64, (), 1))

    # ---- values ----
    def _write(self, step: Step) -> Value:
        self.at.append(step)
        return Value(self, step)

    def constant(self, value: Any, type: str) -> Value:
        """Return a number as a value."""
        return Value(self, Step("const", type, (), value))

    def step_of(self, value: Any, type: str = I64) -> Any:
        """Return what a step takes as argument."""
        return value.step if isinstance(value, Value) else Step("const", type, (), value)

    def of(self, op: str, *args: Any, type: str | None = None) -> Value:
        """Write an operation; numbers take the type of the values."""
        typed = next(a.type for a in reversed(args) if isinstance(a, Value))
        steps = tuple([self.step_of(a, typed) for a in args])
        return self._write(Step(op, type or typed, steps))

    def select(self, test: Value, yes: Any, no: Any) -> Value:
        """Return one of two values."""
        return self.of("select", test, yes, no, type=(yes if isinstance(yes, Value) else no).type)

    def is_greater(self, x: Value, y: Any) -> Value:
        """Tell whether one number is greater than another."""
        return self.of("gt", x, y, type="i1")

    def load(self, base: Value, index: Any, storage: str, type: str) -> Value:
        """Read an element, stored in one way and computed with in another."""
        return self._write(Step("load", type, (base.step, self.step_of(index)), storage))

    def store(self, base: Value, index: Any, value: Value, storage: str) -> None:
        """Write an element."""
        self._write(Step("store", "void", (base.step, self.step_of(index), value.step), storage))

    def behind(self, base: Value, elements: Any, width: int) -> Value:
        """Return the pointer some elements behind another."""
        return self._write(Step("offset", "ptr", (base.step, self.step_of(elements * width))))

    def product(
        self, function: Value, x: Value, y: Value, out: Value, sizes: Sequence[Any], steps: Sequence[Any], type: str,
        *, turned: bool = False, add: bool = False,
    ) -> None:  # fmt: skip
        """Multiply matrices by BLAS's `function` (`blas.cell`): `sizes` are rows, columns and what is summed over, `steps` from row to row.

        The second lies transposed if it is `turned`; the product is put where `out` is, or added there.
        """
        args = (function.step, x.step, y.step, out.step, *[self.step_of(n) for n in (*sizes, *steps)])
        self._write(Step("product", type, args, (False, turned, add)))

    def tile(self, pointers: Sequence[Value], numbers: Sequence[Any], rows: int, width: int) -> None:
        """Multiply `rows` rows of pairs of bfloat16 with a panel of `width` columns.

        `pointers` are the rows, the panel, numbers to begin with and the result; `numbers` how many pairs there are, and how many bytes
        it is from pair to pair of a row, from row to row, and from row to row of the result.
        """
        args = (*[p.step for p in pointers], *[self.step_of(n) for n in numbers])
        self._write(Step("tile", "void", args, (rows, width)))

    def product_of_tile(self, pointers: Sequence[Value], tile: Any, type: str) -> None:
        """Multiply a part of two matrices in registers: for `vectors` alone. See `Tile` there."""
        self._write(Step("product_tile", type, tuple([p.step for p in pointers]), tile))

    def turn(self, source: Value, target: Value, apart: Any, out_apart: Any, width: int, side: int) -> None:
        """Transpose a square of elements of `width` bytes, whose rows are so many bytes apart."""
        args = (source.step, target.step, self.step_of(apart), self.step_of(out_apart))
        self._write(Step("turn_square", "void", args, (width, side)))

    # ---- loops ----
    @contextmanager
    def loop(
        self, begin: Any, end: Any, free: bool = False, short: bool = False, whole: bool = False, single: bool = False
    ) -> Iterator[Value]:
        """Count from `begin` to `end`; see `Loop`."""
        ends = self.step_of(begin), self.step_of(end)
        loop = Loop(Step("index", I64), *ends, free, short=short, whole=whole, single=single)
        self.at.append(loop)
        outside, self.at = self.at, loop.body
        yield Value(self, loop.index)
        self.at = outside

    @contextmanager
    def over(self, *ends: Any) -> Iterator[list[Value]]:
        """Count through several dimensions."""
        outside, found = self.at, []
        for end in ends:
            loop = Loop(Step("index", I64), self.step_of(0), self.step_of(end))
            self.at.append(loop)
            self.at = loop.body
            found.append(Value(self, loop.index))
        yield found
        self.at = outside

    def carry(
        self, starts: Sequence[Value], begin: Any, end: Any, turn: Callable[..., Sequence[Value]], single: bool = False
    ) -> list[Value]:
        """Carry values through a free loop: `turn` gets its index and those before a turn, and returns those after it."""
        loop = Loop(Step("index", I64), self.step_of(begin), self.step_of(end), True, single=single)
        loop.carried = [Carried(s.type, s.step) for s in starts]
        self.at.append(loop)
        outside, self.at = self.at, loop.body
        values = [Value(self, c) for c in loop.carried]
        for carried, after in zip(loop.carried, turn(Value(self, loop.index), *values), strict=True):
            carried.next = after.step
        self.at = outside
        return values


def takes(*arrays: Any) -> bool:
    """Tell whether nests are to work on arrays: NumPy's own, of numbers that kernels know, one of them large."""
    if not any([a.size >= NATIVE for a in arrays]):
        return False
    return all([type(a) is NDARRAY and a.dtype in FLOATING for a in arrays]) and machine.is_available()


@lru_cache(maxsize=512)
def compiled(write: Callable[..., None], *static: Any) -> Any:
    """Return the C function of the nest that `write(nest, *static)` writes."""
    from . import llvm

    nest = Nest()
    write(nest, *static)
    return machine.compiled(llvm.render(Function(nest.body, 0), "KERNEL"))


def filled(size: int) -> int:
    """Return the size of a row that is filled up to whole vectors."""
    return -(-size // LANES) * LANES


def parts_of(items: int, work: float) -> int:
    """Return into how many parts threads share items, whose work is counted in simple operations; each part can have room of its own."""
    count = get_num_threads()
    return 1 if count == 1 or work < _thresholds.NATIVE_WORK or items < 2 else min(items, 4 * count)


def run(function: Any, arrays: Sequence[np.ndarray | None], sizes: Sequence[int], items: int, parts: int) -> None:
    """Call a nest's function for all items, on several threads if they come in several parts."""
    cells = pack(f"{len(arrays)}Q", *[id(arrays[0] if a is None else a) + DATA for a in arrays])
    numbers = pack(f"{len(sizes)}q", *sizes)
    (alone if parts == 1 else share)(function, cells, numbers, None, 0, items, -(-items // parts))
