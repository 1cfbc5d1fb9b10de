"""Copies of arrays that lie the other way in memory: squares of them are transposed in registers.

A loop over the elements of a transposed matrix reads from another line of the cache at each turn. A square of as many rows and columns
as a line has elements reads and writes whole lines. The last squares begin earlier than they would, so that all are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .. import _thresholds
from . import machine

SIDE: Final = {1: 16, 2: 16, 4: 16, 8: 8}  # of a square, by the bytes of an element
LINE: Final = 64  # bytes of a line of the cache


def _place(x: np.ndarray, last: int) -> int | None:
    """Return the axis along which elements are neighbours that lie far apart along the axis `last`; None if there is none to turn."""
    side = SIDE.get(x.itemsize, 0)
    if not side or x.shape[last] < side or abs(x.strides[last]) < LINE:
        return None
    for axis, (size, step) in enumerate(zip(x.shape, x.strides, strict=True)):
        if step == x.itemsize and size >= side and axis != last:
            return axis
    return None


def lies_across(x: np.ndarray, last: int) -> bool:
    """Tell whether a copy of a large array, with elements that are neighbours along the axis `last`, is worth turning it."""
    return x.size >= _thresholds.NATIVE and not x.dtype.hasobject and _place(x, last) is not None


def copied(x: Any) -> Any:
    """Copy a large array into memory that has the order of its axes; None if it does not lie the other way."""
    if type(x) is not np.ndarray or x.ndim < 2 or not lies_across(x, x.ndim - 1) or not machine.is_available():
        return None
    return _turned(x)


def copied_in_order(x: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Copy an array that lies across into memory in which axes come in this order, the last one with neighbours."""
    return _turned(x.transpose(order)).transpose(np.argsort(order))


def _write_turned(b: Any, rank: int, width: int) -> None:
    """Transpose matrices; an item is a strip of rows of the result, as many as a square has."""
    side = SIDE[width]
    source, target = b.pointer(), b.pointer()
    rows, columns, apart, out_apart = b.sizes(4)
    sizes, steps, out_steps = b.sizes(rank), b.sizes(rank), b.sizes(rank)
    strips = (rows + (side - 1)) // side
    low, high = b.items()
    with b.loop(low, high) as item:
        row, rest = b.of("imin", item % strips * side, rows - side), item // strips
        taken, put = b.behind(source, row, width), b.behind(target, row * out_apart, 1)
        for size, step, out_step in zip(reversed(sizes), reversed(steps), reversed(out_steps), strict=True):
            at, rest = rest % size, rest // size
            taken, put = b.behind(taken, at * step, 1), b.behind(put, at * out_step, 1)
        with b.loop(0, (columns + (side - 1)) // side) as block:
            column = b.of("imin", block * side, columns - side)
            b.turn(b.behind(taken, column * apart, 1), b.behind(put, column, width), apart, out_apart, width, side)


def _turned(x: np.ndarray) -> np.ndarray:
    from .nests import compiled, parts_of, run

    out = np.empty(x.shape, x.dtype)
    last = x.ndim - 1
    axis: int = _place(x, last)  # type: ignore[assignment]
    outer = [k for k in range(last) if k != axis and x.shape[k] != 1]
    rows, columns = x.shape[axis], x.shape[last]
    items = x.size // (rows * columns) * -(-rows // SIDE[x.itemsize])
    sizes = [rows, columns, x.strides[last], out.strides[axis]]
    sizes += [x.shape[k] for k in outer] + [x.strides[k] for k in outer] + [out.strides[k] for k in outer]
    run(compiled(_write_turned, len(outer), x.itemsize), [x, out], sizes, items, parts_of(items, 4 * x.size))
    return out
