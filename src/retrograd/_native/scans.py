"""Running sums, products, extremes and linear recurrences along one axis of large arrays.

An axis with nothing behind it is gone along with the running value in a register, several rows at once, so that one does not wait for the
other's sum; else neighbours run side by side, their values in a row of memory. Values run in a wider type than they are stored in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from . import machine, nests
from .expression import I64
from .nests import Nest, Value
from .trace import DTYPE, STORAGE

NDARRAY = np.ndarray
ROWS: Final = 4  # that run at once
LANES: Final = 512
RUNS_IN: Final = {"f16": "f32", "bf16": "f32", "f32": "f64"}


def _values(nest: Nest, kind: str, given: Sequence[Any], before: Sequence[Value] | None, index: Any) -> list[Value]:
    """Return the running values after an element: the value, and of an extreme its index."""
    x = given[-1]
    if kind in ("max", "min"):
        if before is None:
            return [x, nest.constant(0, I64)]
        best, at = before
        # of equals the last; a NaN is taken at once, and only another NaN takes its place
        taken = nest.of(
            "or", nest.of("ge" if kind == "max" else "le", x, best, type="i1"), nest.of("ne", x, x, type="i1")
        )
        return [nest.select(taken, x, best), nest.select(taken, index, at)]
    if before is None:
        return [x]
    if kind == "recurrence":
        return [x + given[0] * before[0]]
    return [before[0] + x if kind == "sum" else before[0] * x]


def _behind(nest: Nest, pointers: Sequence[Value], storages: Sequence[str], elements: Any) -> list[Value]:
    return [nest.behind(p, elements, DTYPE[s].itemsize) for p, s in zip(pointers, storages, strict=True)]


def _running_in(kind: str, storage: str) -> str:
    return storage if kind in ("max", "min") and storage == "f32" else RUNS_IN.get(storage, storage)


def _rows(
    nest: Nest, kind: str, storages: tuple[str, ...], results: tuple[str, ...], reverse: bool, group: int
) -> None:
    pointers = [nest.pointer() for _ in (*storages, *results)]
    rows, length = nest.sizes(2)
    type = _running_in(kind, storages[-1])
    low, high = nest.items()
    with nest.loop(low, high) as item:
        bases = []
        for k in range(group):  # the last group may take a row twice
            row = nest.of("imin", item * group + k, rows - 1) if group > 1 else item
            bases.append(_behind(nest, pointers, (*storages, *results), row * length))

        def turn(i: Any, *carried: Value) -> list[Value]:
            place = length - 1 - i if reverse else i
            after = []
            for k, base in enumerate(bases):
                given = [nest.load(b, place, s, type) for b, s in zip(base, storages, strict=False)]
                before = carried[k * len(results) : (k + 1) * len(results)] if carried else None
                values = _values(nest, kind, given, before, place)
                for b, s, v in zip(base[len(storages) :], results, values, strict=True):
                    nest.store(b, place, v, s)
                after += values
            return after

        nest.carry(turn(nest.constant(0, I64)), 1, length, turn)


def _lanes(nest: Nest, kind: str, storages: tuple[str, ...], results: tuple[str, ...], reverse: bool) -> None:
    pointers = [nest.pointer() for _ in (*storages, *results)]
    running = [nest.pointer() for _ in results]
    length, inner, blocks = nest.sizes(3)
    type = _running_in(kind, storages[-1])
    types = [type, I64][: len(results)]
    low, high = nest.items()
    with nest.loop(low, high) as item:
        outer, block = item // blocks, item % blocks
        begin = block * LANES
        end = nest.of("imin", begin + LANES, inner)
        kept = _behind(nest, running, types, outer * inner)

        def step(i: Any, is_first: bool) -> None:
            place = length - 1 - i if reverse else i
            rows = _behind(nest, pointers, (*storages, *results), (outer * length + place) * inner)
            with nest.loop(begin, end, free=True) as lane:
                given = [nest.load(b, lane, s, type) for b, s in zip(rows, storages, strict=False)]
                before = None if is_first else [nest.load(k, lane, t, t) for k, t in zip(kept, types, strict=True)]
                values = _values(nest, kind, given, before, place)
                for row, s, k, t, v in zip(rows[len(storages) :], results, kept, types, values, strict=True):
                    nest.store(k, lane, v, t)
                    nest.store(row, lane, v, s)

        step(nest.constant(0, I64), True)
        with nest.loop(1, length) as i:
            step(i, False)


def scanned(kind: str, arrays: Sequence[Any], axis: int, reverse: bool = False) -> list[np.ndarray] | None:
    """Run "sum", "prod", "max", "min" (with indices) or "recurrence" along an axis of large arrays of one shape; None if no kernel can."""
    x = arrays[-1]
    for a in arrays:
        if type(a) is not NDARRAY or a.size < nests.NATIVE or a.dtype not in STORAGE or a.dtype.char == "?":
            return None
    if not x.ndim or not machine.is_available():
        return None
    given = [np.ascontiguousarray(a) for a in arrays]
    outs = [np.empty(x.shape, x.dtype)]
    if kind in ("max", "min"):
        outs.append(np.empty(x.shape, np.int64))
    length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    outer = x.size // (length * inner)
    storages, results = (tuple([STORAGE[a.dtype] for a in part]) for part in (given, outs))
    if inner == 1:
        group = ROWS if outer >= ROWS else 1
        items = -(-outer // group)
        function = nests.compiled(_rows, kind, storages, results, reverse, group)
        nests.run(function, [*given, *outs], [outer, length], items, nests.parts_of(items, 8 * x.size))
        return outs
    wide = DTYPE[_running_in(kind, storages[-1])]
    running = [np.empty(outer * inner, d) for d in (wide, np.int64)[: len(outs)]]
    blocks = -(-inner // LANES)
    function = nests.compiled(_lanes, kind, storages, results, reverse)
    items = outer * blocks
    nests.run(function, [*given, *outs, *running], [length, inner, blocks], items, nests.parts_of(items, 8 * x.size))
    return outs
