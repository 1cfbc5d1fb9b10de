"""Products of matrices of one size by their address, for loops that would call BLAS's: see `Tile` in `vectors`.

BLAS lays both matrices out anew for loops that serve all sizes, which is most of its time where matrices have a hundred rows. These are
compiled for one size, and called as BLAS's is, whose numbers they do not read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from . import machine
from .llvm import BYTES, TYPES
from .loops import Step
from .nests import Nest, Value
from .vectors import Tile, VectorText, ending, lanes_of, tile_shape

SUMMED: Final = 1024  # numbers that are added one after the other


@lru_cache(maxsize=512)
def cell(rows: int, columns: int, inner: int, steps: tuple[int, int, int], type: str, add: bool) -> np.ndarray:
    """Return memory that holds the address of a product; `steps` are how many numbers rows of the three matrices are apart."""
    return np.array([machine.address(_text(rows, columns, inner, steps, type, add), as_it_is=True)], np.uint64)


def _spans(length: int, size: int) -> list[tuple[int, int, int]]:
    """Divide a length into pieces of a size and a rest: where they begin, how many there are, and their size."""
    full, rest = divmod(length, size)
    return [(0, full, size)] * bool(full) + [(full * size, 1, rest)] * bool(rest)


def _text(rows: int, columns: int, inner: int, steps: tuple[int, int, int], type: str, add: bool) -> str:
    """Return the text of a function with the arguments of BLAS's product."""
    b, width, number = Nest(), BYTES[type], TYPES[type]
    x, y, out = (Value(b, Step("argument", "ptr", (), name)) for name in ("%x", "%y", "%out"))
    x_row, y_row, out_row = steps
    vectors, tall = tile_shape(rows, columns, type, False)
    for left, many, size in _spans(columns, vectors * lanes_of(type)):
        with b.loop(0, many) as across:
            panel, place = (b.behind(one, across * size + left, width) for one in (y, out))
            for top, times, height in _spans(rows, tall):
                with b.loop(0, times) as down:
                    first = down * height + top
                    pointers = b.behind(x, first * x_row, width), panel, b.behind(place, first * out_row, width)
                    tile = Tile(height, size, inner, x_row * width, width, y_row * width, out_row * width, add)
                    b.product_of_tile(pointers, tile, type)
    text = VectorText()
    text.names |= {id(one.step): one.step.detail for one in (x, y, out)}
    text.body(b.body)
    arguments = f"i32, i32, i32, i64, i64, i64, {number}, ptr %x, i64, ptr %y, i64, {number}, ptr %out, i64"
    lines = [*text.intrinsics.values(), f"define void @KERNEL({arguments}) #0 {{", "entry:", *text.lines, *ending(text)]
    return "\n".join(lines) + "\n"
