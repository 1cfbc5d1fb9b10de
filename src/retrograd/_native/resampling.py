"""Weighted sums of a few elements along each of the last axes, one axis after the other.

An item is a plane: all of these axes. What one axis gives stays in the cache until the next one, the axis before it, has read it.
Tables say which elements a result is made of: a row of as many places for each, of which -1 stands for none, and their weights.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from .nests import Nest, Value, compiled, parts_of, run
from .trace import STORAGE

TERMS: Final = 16  # of a sum: the loops name every one of them


class Table(NamedTuple):
    """Places (results, terms) of one axis, weights of the same shape or None, and whether some places stand for none."""

    places: np.ndarray
    weights: np.ndarray | None
    ragged: bool


class _Part(NamedTuple):
    """Where a plane lies: its array, the place in it, and how numbers are stored."""

    base: Value
    start: Any
    storage: str


class _Axis(NamedTuple):
    """What is static of an axis: how many terms its sums have, if they are weighted and ragged, and if its elements are neighbours."""

    terms: int
    weighted: bool
    ragged: bool
    last: bool


def _write_axis(
    b: Nest, axis: _Axis, source: _Part, target: _Part, type: str, table: list[Value], sizes: list[Value]
) -> None:
    """Resample one axis of a plane."""
    (places, weights), (outer, size, count, inner) = table, sizes
    zero = b.constant(0.0, type)
    with b.over(outer, count) as (o, r):
        at = [b.load(places, r * axis.terms + t, "i64", "i64") for t in range(axis.terms)]
        factors = [
            b.load(weights, r * axis.terms + t, type, type) if axis.weighted else None for t in range(axis.terms)
        ]

        def total(column: Any) -> Value:
            value: Any = None
            for place, factor in zip(at, factors, strict=True):
                here = b.of("maximum", place, 0) if axis.ragged else place
                term: Any = b.load(source.base, source.start + (o * size + here) * inner + column, source.storage, type)
                term = term if factor is None else term * factor
                term = b.select(b.is_greater(place, -1), term, zero) if axis.ragged else term
                value = term if value is None else value + term
            return value  # type: ignore[no-any-return]

        if axis.last:
            b.store(target.base, o * count + r + target.start, total(0), target.storage)
        else:
            into = (o * count + r) * inner + target.start
            with b.loop(0, inner, free=True, short=True) as column:
                b.store(target.base, into + column, total(column), target.storage)


def _write(b: Nest, axes: tuple[_Axis, ...], storage: str, type: str, width: int) -> None:
    """Go over the axes, the last first."""
    x, out, rooms = (b.pointer() for _ in range(3))
    tables = [[b.pointer(), b.pointer()] for _ in axes]
    part, x_plane, out_plane, room = b.sizes(4)
    sizes = [b.sizes(4) for _ in axes]
    low, high = b.items()
    own = b.behind(rooms, low // part * (room * 2), width)
    halves = [own, b.behind(own, room, width)]
    with b.loop(low, high) as item:
        source = _Part(x, item * x_plane, storage)
        for k, axis in enumerate(axes):
            ends = k == len(axes) - 1
            target = _Part(out, item * out_plane, storage) if ends else _Part(halves[k % 2], 0, type)
            _write_axis(b, axis, source, target, type, tables[k], sizes[k])
            source = target


def computed(dtype: Any) -> Any:
    """Return the dtype that numbers are computed in: half precision in float32."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def resampled(x: Any, tables: tuple[Table | None, ...]) -> Any:
    """Resample the last axes of an array; an axis without a table stays."""
    storage = STORAGE[x.dtype]
    type, dtype = "f64" if storage == "f64" else "f32", computed(x.dtype)
    rank = len(tables)
    lead, shape = x.shape[: x.ndim - rank], list(x.shape[x.ndim - rank :])
    x_plane, largest = prod(shape), 1
    axes: list[_Axis] = []
    sizes: list[int] = []
    arrays: list[np.ndarray | None] = []
    for axis in range(rank - 1, -1, -1):
        table = tables[axis]
        if table is None:
            continue
        inner, count = prod(shape[axis + 1 :]), len(table.places)
        sizes += [prod(shape[:axis]), shape[axis], count, inner]
        axes.append(_Axis(table.places.shape[1], table.weights is not None, table.ragged, inner == 1))
        arrays += [table.places, table.weights]
        shape[axis] = count
        largest = max(largest, prod(shape))
    items = prod(lead)
    parts = parts_of(items, items * largest * 2 * len(axes))
    out = np.empty((*lead, *shape), x.dtype)
    rooms = np.empty((parts, 2, largest if len(axes) > 1 else 1), dtype)
    function = compiled(_write, tuple(axes), storage, type, dtype.itemsize)
    run(
        function,
        [x, out, rooms, *arrays],
        [-(-items // parts), x_plane, prod(shape), rooms.shape[-1], *sizes],
        items,
        parts,
    )
    return out
