"""Products of matrices of bfloat16, by instructions that multiply pairs of them and add in float32.

The second matrix is packed into panels of columns, in which the two numbers of a pair (neighbours along what is summed over) lie side by
side; so is the first, unless its rows hold pairs already. A tile of a few rows and the columns of a panel is summed up in registers
and rounded once. The last tiles begin earlier than they would, so that all are whole. Numbers below 1.2e-38 count as zero.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from . import machine
from .nests import Nest, Value, compiled, parts_of, run
from .trace import STORAGE

ROWS: Final = 8  # of a tile, with two vectors of columns: sums and what is multiplied stay in registers
LANES: Final = 16
GROUP: Final = 8  # tiles that use a panel while it is in the first cache
LEAST_ROWS: Final = 4  # of the first matrix: with fewer, packing the second takes longer than the product
LEAST: Final = 1 << 15  # multiplications from which the calls are worth it


def multiplied(x: Any, y: Any, bias: Any = None) -> Any:
    """Return the product of matrices (..., m, k) and (..., k, n), to which a bias (n) is added; None if it is not for these kernels."""
    if x.ndim < 2 or y.ndim < 2 or STORAGE.get(x.dtype) != "bf16" or x.dtype != y.dtype or not machine.has_pairs():
        return None
    (m, k), n = x.shape[-2:], y.shape[-1]
    if (
        m < LEAST_ROWS
        or n < LANES
        or k < 2
        or k != y.shape[-2]
        or x.size * n < LEAST
        or type(x) is not np.ndarray is not type(y)
    ):
        return None
    if y.ndim == 2:
        rows = x if x.ndim == 2 else x.reshape(-1, k)
        return _product(rows, y, bias).reshape((*x.shape[:-1], n))
    if x.shape[:-2] != y.shape[:-2] or bias is not None:
        return None
    lead = x.shape[:-2]
    return _products(x.reshape(-1, m, k), y.reshape(-1, k, n)).reshape((*lead, m, n))


class _Lines:
    """The lines (columns of a matrix, or rows) that make panels.

    `form` says that neighbouring lines are neighbours in memory ("near"), or that lines hold pairs, and whole ones ("pairs").
    """

    def __init__(self, b: Nest, width: int, form: str) -> None:
        self.b, self.width, self.form = b, width, form
        self.count, self.whole, self.rest, self.apart, self.step = b.sizes(5)

    def pack(self, source: Value, room: Value, panel: Value) -> None:
        """Write a panel: pairs of all its lines, one pair after the other."""
        b, width = self.b, self.width
        first = b.of("imin", panel * width, self.count - width)

        into = b.behind(room, panel * ((self.whole + self.rest) * width), 4)
        if self.form == "pairs":
            # as much of a line as a line of the cache holds: many lines at once would push each other out of it
            with b.over((self.whole + (LANES - 1)) // LANES, width) as (block, line):
                own = b.behind(source, (first + line) * self.apart, 2)
                with b.loop(block * LANES, b.of("imin", block * LANES + LANES, self.whole)) as pair:
                    b.store(into, pair * width + line, b.load(own, pair, "i32", "i32"), "i32")
            return

        def number(line: Any, at: Any) -> Value:
            there = first + line if self.form == "near" else (first + line) * self.apart
            return b.load(source, there + at * self.step, "u16", "i32")

        with b.loop(0, self.whole) as pair, b.loop(0, width, free=True, whole=True) as line:
            low, high = number(line, pair * 2), number(line, pair * 2 + 1)
            b.store(into, pair * width + line, b.of("or", low, b.of("shl", high, 16)), "i32")
        with b.loop(0, self.rest), b.loop(0, width, free=True, whole=True) as line:
            b.store(into, self.whole * width + line, number(line, self.whole * 2), "i32")

    def pack_all(self, source: Value, room: Value) -> None:
        """Write all panels."""
        with self.b.loop(0, (self.count + (self.width - 1)) // self.width) as panel:
            self.pack(source, room, panel)


class _Tiles:
    """The tiles of a product. `packed` says that the first matrix lies in panels of rows."""

    def __init__(self, b: Nest, rows: int, width: int, packed: bool) -> None:
        self.b, self.rows, self.width, self.packed = b, rows, width, packed
        self.m, self.n, self.pairs, self.x_row = b.sizes(4)

    def groups(self) -> Any:
        return (self.m + (self.rows * GROUP - 1)) // (self.rows * GROUP)

    def multiply(self, x: Value, panels: Value, start: Value, out: Value, group: Value) -> None:
        """Sum up a group of tiles."""
        b, rows, width = self.b, self.rows, self.width
        tiles = (self.m + (rows - 1)) // rows
        with b.loop(0, (self.n + (width - 1)) // width) as panel:
            column = b.of("imin", panel * width, self.n - width)
            with b.loop(group * GROUP, b.of("imin", group * GROUP + GROUP, tiles)) as tile:
                row = b.of("imin", tile * rows, self.m - rows)
                pointers = (
                    b.behind(x, tile * (self.pairs * rows), 4) if self.packed else b.behind(x, row * self.x_row, 2),
                    b.behind(panels, panel * (self.pairs * width), 4),
                    b.behind(start, column, 4),
                    b.behind(out, row * self.n + column, 2),
                )
                steps = (rows * 4, 4) if self.packed else (4, self.x_row * 2)
                b.tile(pointers, (self.pairs, *steps, self.n * 2), rows, width)


def _write_panels(b: Nest, width: int, form: str) -> None:
    """Pack a matrix; an item is a panel."""
    source, room = b.pointer(), b.pointer()
    lines = _Lines(b, width, form)
    low, high = b.items()
    with b.loop(low, high) as panel:
        lines.pack(source, room, panel)


def _write_product(b: Nest, rows: int, width: int, packed: bool) -> None:
    """Multiply two matrices; an item is a group of tiles."""
    x, panels, start, out = (b.pointer() for _ in range(4))
    tiles = _Tiles(b, rows, width, packed)
    low, high = b.items()
    with b.loop(low, high) as group:
        tiles.multiply(x, panels, start, out, group)


def _write_products(b: Nest, rows: int, width: int, packed: bool, x_form: str, y_form: str) -> None:
    """Multiply many matrices; an item is a pair of them."""
    x, y, start, out, x_rooms, y_rooms = (b.pointer() for _ in range(6))
    columns, lines = _Lines(b, width, y_form), _Lines(b, rows, x_form)
    tiles = _Tiles(b, rows, width, packed)
    x_step, y_step, x_room, y_room, part = b.sizes(5)
    low, high = b.items()
    mine = low // part
    left, panels = b.behind(x_rooms, mine * x_room, 4), b.behind(y_rooms, mine * y_room, 4)
    with b.loop(low, high) as item:
        first = b.behind(x, item * x_step, 2)
        columns.pack_all(b.behind(y, item * y_step, 2), panels)
        if packed:
            lines.pack_all(first, left)
        made = b.behind(out, item * (tiles.m * tiles.n), 2)
        with b.loop(0, tiles.groups()) as group:
            tiles.multiply(left if packed else first, panels, start, made, group)


# ---- calls ----
def _sizes(lines: Any) -> list[int]:
    """Return what loops need to know about lines (count, k)."""
    count, k = lines.shape
    return [count, k // 2, k % 2, lines.strides[0] // 2, lines.strides[1] // 2]


def _form(lines: Any) -> str:
    """Return how lines (..., count, k) lie in memory. See `_Lines`."""
    if lines.strides[-2] == 2:
        return "near"
    whole = _holds_pairs(lines) and not any(step % 4 for step in lines.strides[:-1]) and lines.ctypes.data % 4 == 0
    return "pairs" if whole else ""


def _packed(lines: Any, width: int) -> Any:
    """Return the lines (count, k) of a matrix in panels."""
    count, k = lines.shape
    panels = -(-count // width)
    room = np.empty((panels, (k + 1) // 2, width), np.int32)
    function = compiled(_write_panels, width, _form(lines))
    run(function, [lines, room], _sizes(lines), panels, parts_of(panels, 4 * count * k))
    return room


def _tile(m: int, n: int) -> tuple[int, int]:
    return min(ROWS, m), 2 * LANES if n >= 2 * LANES else LANES


def _holds_pairs(x: Any) -> bool:
    return bool(x.strides[-1] == 2 and x.shape[-1] % 2 == 0)


def _product(x: Any, y: Any, bias: Any) -> Any:
    (m, k), n = x.shape, y.shape[1]
    rows, width = _tile(m, n)
    direct = _holds_pairs(x)
    start = np.zeros(n, np.float32) if bias is None else np.ascontiguousarray(bias, np.float32)
    out = np.empty((m, n), x.dtype)
    groups = -(-m // (rows * GROUP))
    function = compiled(_write_product, rows, width, not direct)
    arrays = [x if direct else _packed(x, rows), _packed(y.T, width), start, out]
    run(function, arrays, [m, n, (k + 1) // 2, x.strides[0] // 2], groups, parts_of(groups, m * n * k // LANES))
    return out


def _products(x: Any, y: Any) -> Any:
    count, m, k = x.shape
    n = y.shape[2]
    rows, width = _tile(m, n)
    direct, pairs = _holds_pairs(x), (k + 1) // 2
    out = np.empty((count, m, n), x.dtype)
    parts = parts_of(count, count * m * n * k // LANES)
    x_room, y_room = (0 if direct else -(-m // rows) * rows * pairs), -(-n // width) * width * pairs
    rooms = np.empty((parts, x_room), np.int32), np.empty((parts, y_room), np.int32)
    function = compiled(_write_products, rows, width, not direct, _form(x), _form(y.swapaxes(1, 2)))
    sizes = [*_sizes(y[0].T), *_sizes(x[0]), m, n, pairs, x.strides[1] // 2]
    sizes += [x.strides[0] // 2, y.strides[0] // 2, x_room, y_room, -(-count // parts)]
    run(function, [x, y, np.zeros(n, np.float32), out, *rooms], sizes, count, parts)
    return out
