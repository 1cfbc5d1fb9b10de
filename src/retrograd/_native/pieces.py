"""Means of windows that cut an array into pieces: what most average pools are, and their transpose.

Nothing is padded and no element is in two windows. So all planes together are rows, each window has elements of `tall` rows that follow
each other, and what is summed along a row first is as dense as the array: loops over blocks of rows have no ends but the last. Between
rows only so many numbers are added as a row has windows; a known number of these is filled up to whole vectors, and what runs over
the end of a row is overwritten by the next.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from .nests import KNOWN, LANES, Nest, Value, compiled, filled, parts_of, run
from .windows import WIDTH, types_of

BLOCK: Final = 1 << 11  # sums along rows that are kept at a time


class _Rows:
    """Rows of windows as loops see them: all are in blocks, and a block is an item."""

    def __init__(self, b: Nest, tall: int, wide: int, last: int, type: str) -> None:
        self.b, self.tall, self.wide, self.type = b, tall, wide, type
        self.part, self.rows, self.block, self.room, self.other_room, count = b.sizes(6)
        self.known = bool(last)
        self.last: Any = last or count  # windows of a row
        self.low, self.high = b.items()
        self.mine = self.low // self.part

    def own(self, base: Value, numbers: Value) -> Value:
        """Return the room of this part."""
        return self.b.behind(base, self.mine * numbers, WIDTH[self.type])

    def blocks(self, body: Any) -> None:
        """Go over blocks: `body(first window, how many rows)`."""
        with self.b.loop(self.low, self.high) as item:
            first = item * self.block
            body(first * self.last, self.b.of("imin", self.block, self.rows - first))

    def over_row(self) -> Any:
        return self.b.loop(0, filled(self.last) if self.known else self.last, free=True, whole=self.known)


def _write_means(b: Nest, tall: int, wide: int, last: int, divisor: int, storage: str, type: str) -> None:
    """Sum along rows, then over rows."""
    x, out, sums, totals = (b.pointer() for _ in range(4))
    p = _Rows(b, tall, wide, last, type)
    sums, totals = p.own(sums, p.room), p.own(totals, p.other_room)

    def block(first: Value, rows: Value) -> None:
        start = first * (tall * wide)
        with b.loop(0, rows * p.last * tall, free=True) as f:
            total = b.load(x, start + f * wide, storage, type)
            for j in range(1, wide):
                total = total + b.load(x, start + f * wide + j, storage, type)
            b.store(sums, f, total, type)
        with b.loop(0, rows) as row, p.over_row() as f:
            total = b.load(sums, row * (p.last * tall) + f, type, type)
            for i in range(1, tall):
                total = total + b.load(sums, row * (p.last * tall) + (p.last * i + f), type, type)
            b.store(totals, row * p.last + f, total, type)
        with b.loop(0, rows * p.last, free=True) as f:
            b.store(out, first + f, b.load(totals, f, type, type) / b.constant(float(divisor), type), storage)

    p.blocks(block)


def _write_shares(b: Nest, tall: int, wide: int, last: int, divisor: int, storage: str, type: str) -> None:
    """Give each element of a window its share: first to rows, then along them."""
    g, out, sums, shares = (b.pointer() for _ in range(4))
    p = _Rows(b, tall, wide, last, type)
    sums, shares = p.own(sums, p.room), p.own(shares, p.other_room)

    def block(first: Value, rows: Value) -> None:
        start = first * (tall * wide)
        with b.loop(0, rows * p.last, free=True) as f:
            b.store(shares, f, b.load(g, first + f, storage, type) / b.constant(float(divisor), type), type)
        with b.over(rows, tall) as (row, i), p.over_row() as f:
            b.store(sums, row * (p.last * tall) + i * p.last + f, b.load(shares, row * p.last + f, type, type), type)
        with b.loop(0, rows * p.last * tall, free=True) as f:
            value = b.load(sums, f, type, type)
            for j in range(wide):
                b.store(out, start + f * wide + j, value, storage)

    p.blocks(block)


# ---- calls ----
def _run(write: Any, arrays: list[np.ndarray], rows: int, kernel: tuple[int, ...], last: int, divisor: int) -> None:
    storage, type, dtype = types_of(arrays[0].dtype)
    tall, wide = prod(kernel[:-1]), kernel[-1]
    block = max(1, BLOCK // (tall * last))
    items = -(-rows // block)
    parts = parts_of(items, rows * tall * wide * last)
    room, other_room = block * tall * last + LANES, block * last + LANES
    rooms = [np.empty((parts, numbers), dtype) for numbers in (room, other_room)]
    function = compiled(write, tall, wide, last if last <= KNOWN else 0, divisor, storage, type)
    run(function, [*arrays, *rooms], [-(-items // parts), rows, block, room, other_room, last], items, parts)


def means(x: np.ndarray, kernel: tuple[int, ...], divisor: int) -> np.ndarray:
    """Sum up the pieces (one or two axes) into which a kernel cuts the last axes of a dense array, and divide the sums."""
    rank = len(kernel)
    count = [n // k for n, k in zip(x.shape[-rank:], kernel, strict=True)]
    out = np.empty((*x.shape[:-rank], *count), x.dtype)
    _run(_write_means, [x, out], out.size // count[-1], kernel, count[-1], divisor)
    return out


def shares(g: np.ndarray, kernel: tuple[int, ...], divisor: int) -> np.ndarray:
    """Return the transpose of `means`, of a dense array."""
    rank = len(kernel)
    out = np.empty((*g.shape[:-rank], *[n * k for n, k in zip(g.shape[-rank:], kernel, strict=True)]), g.dtype)
    _run(_write_shares, [g, out], g.size // g.shape[-1], kernel, g.shape[-1], divisor)
    return out
