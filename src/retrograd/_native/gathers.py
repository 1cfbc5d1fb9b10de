"""Adding at indices, one after the other in their order, so that sums have the same bits whatever the number of threads.

Indices are checked before anything runs: `are_inside` tells whether they all lie in an axis as they are, and what has others is not for
the functions below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import _thresholds
from .trace import STORAGE

if TYPE_CHECKING:
    from .nests import Nest  # and below in functions: kernels take time to import

COLUMNS: Final = 64  # that a thread takes at least
SUMS: Final = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


def are_inside(index: Any, size: int) -> bool:
    """Tell whether indices lie in an axis of `size` elements, none of them counted from its end."""
    return not index.size or int(index.view(np.uint64).max()) < size


def adds(out: Any, values: Any) -> bool:
    """Tell whether values are added by a kernel: many of them, to dense sums of an array of NumPy's."""
    if values.size < _thresholds.NATIVE:
        return False
    from .nests import takes

    return (
        takes(values)
        and type(out) is np.ndarray
        and out.flags.c_contiguous
        and SUMS.get(out.dtype) == ("f64" if values.dtype == np.float64 else "f32")
    )


def _write(b: Nest, storage: str, type: str, width: str, own: bool) -> None:
    """Add rows of columns to those that indices name; an item is a block of columns of one of the outer elements.

    `width` says how many columns there are: "one", "few" or "many"; `own` that each element has an index of its own.
    """
    out, index, values = (b.pointer() for _ in range(3))
    count, size, inner, block, blocks = b.sizes(5)
    low, high = b.items()

    def add(here: Any, there: Any) -> None:
        b.store(out, here, b.load(out, here, type, type) + b.load(values, there, storage, type), type)

    with b.loop(low, high) as item:
        outer, start = item // blocks, item % blocks * block
        table, source = outer * (size * inner), outer * (count * inner)
        end = b.of("imin", start + block, inner)
        with b.loop(0, count) as k:
            if width == "one":
                add(table + b.load(index, source + k if own else k, "i64", "i64"), source + k)
            elif own:
                with b.loop(start, end) as column:
                    there = source + k * inner + column
                    add(table + b.load(index, there, "i64", "i64") * inner + column, there)
            else:
                here, there = table + b.load(index, k, "i64", "i64") * inner, source + k * inner
                with b.loop(start, end, free=True, short=width == "few") as column:
                    add(here + column, there + column)


def _blocks(outer: int, count: int, inner: int) -> tuple[int, int, int]:
    """Return how many columns a block has, how many blocks there are, and into how many parts they are shared out."""
    from .nests import parts_of

    parts = parts_of(outer * max(1, inner // COLUMNS), 4.0 * outer * count * inner)
    block = inner if outer >= parts else max(COLUMNS, -(-inner // parts))
    blocks = -(-inner // block)
    return block, blocks, min(parts, outer * blocks)


def _add(out: Any, index: Any, values: Any, own: bool) -> None:
    from .nests import compiled, run

    outer, count, inner = values.shape
    width = "one" if inner == 1 else "few" if inner < 4 * COLUMNS and not own else "many"
    block, blocks, parts = _blocks(outer, count, inner)
    sizes = [count, out.size // max(1, outer * inner), inner, block, blocks]
    function = compiled(_write, STORAGE[values.dtype], SUMS[out.dtype], width, own)
    run(function, [out, index, np.ascontiguousarray(values)], sizes, outer * blocks, parts)


def add_rows(out: Any, index: Any, values: Any) -> None:
    """Add values (outer, count, inner) to a table (outer, size, inner) at indices (count)."""
    _add(out, index, values, False)


def add_elements(out: Any, index: Any, values: Any) -> None:
    """Add values (outer, count, inner) to a table (outer, size, inner) at indices of the same shape, each in its own column."""
    _add(out, index, values, True)
