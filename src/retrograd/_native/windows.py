"""Windows over the last axes of an array: sums with a weight for each place of a window, their transposes, and largest elements.

Note [Phases]
An item is a plane: all of the last axes. It is copied into room that a thread has at hand, with what pads it around it, so that no
window has an edge. With a stride, every stride-th element lies in a stretch of its own, a phase: the elements at one place of all
windows then are neighbours in one phase, shifted by an offset, and the windows of a plane are one long loop over neighbours. What
runs over the end of a row is computed too, and left out when results are copied to where they belong.
The transposes go the same ways back: gradients lie in room with zeros around them, and each phase is a sum of shifted gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from .nests import Nest, Value, compiled, parts_of, run
from .trace import STORAGE

PLACES: Final = 64  # of a window: the loops name every one of them
BLOCK: Final = 1 << 11  # numbers that are summed up at a time: they stay in the first cache
ROWS: Final = 4  # of windows that are summed up at a time
AT_ONCE: Final = 16  # places whose weights stay in registers
VECTORS: Final = 64  # numbers up to which loops may run over their end
Pattern = tuple[tuple[int, ...], ...]  # phase, number of the base, how far along the last two axes
Phases = tuple[tuple[int, int], ...]
WIDTH: Final = {"f32": 4, "f64": 8}


class Layout:
    """Where the windows of a plane lie in room. `stride` and the others have a number for each axis."""

    def __init__(
        self, size: tuple[int, ...], count: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
        padding: tuple[int, ...], dilation: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.size, self.count, self.stride = size, count, stride
        axes = list(zip(size, count, kernel, stride, padding, dilation, strict=True))
        self.rows = [c + (k - 1) * d // s for _, c, k, s, _, d in axes]  # of a phase, with all that windows reach
        self.steps = [prod(self.rows[a + 1 :]) for a in range(len(axes))]
        self.reach = sum((k - 1) * d // s * step for (_, _, k, s, _, d), step in zip(axes, self.steps, strict=True))
        self.room = _up(prod(self.rows)) + _up(self.reach) + VECTORS
        self.windows = _up(sum((c - 1) * step for c, step in zip(count, self.steps, strict=True)) + 1)
        # each place of a window: its phase, where its plane of the kernel begins, and how far along the last two axes it is
        places = []
        for place in product(*map(range, kernel)):
            reached = [k * d for k, d in zip(place, dilation, strict=True)]
            phase = tuple(r % s for r, s in zip(reached, stride, strict=True))
            shifts = [r // s for r, s in zip(reached, stride, strict=True)]
            base = sum(n * step for n, step in zip(shifts[:-2], self.steps, strict=False))
            places.append((phase, base, 0 if len(shifts) == 1 else shifts[-2], shifts[-1]))
        groups = sorted({phase[:-1] for phase, *_ in places})
        self.phases = tuple(sorted({(groups.index(phase[:-1]), phase[-1]) for phase, *_ in places}))
        known = [(self.phases.index((groups.index(phase[:-1]), phase[-1])), *rest) for phase, *rest in places]
        self.bases = list(dict.fromkeys([(phase, base) for phase, base, _, _ in known]))
        self.pattern = tuple([(phase, self.bases.index((phase, base)), *far) for phase, base, *far in known])
        self.groups = [_part((*group, 0), axes, self.rows) for group in groups]
        used = [_part((*groups[group], last), axes, self.rows) for group, last in self.phases]
        self.is_reached = sum(prod(count for _, _, count in part) for part in used) == prod(size)
        # what of a phase elements of the plane lie in, also those of phases that no window reaches: the transposes need no more
        before, s = padding[-1], stride[-1]
        lows = [sum(first * step for (first, _, _), step in zip(part[:-1], self.steps, strict=False)) + before // s
                for part in used]  # fmt: skip
        highs = [sum((first + count - 1) * step for (first, _, count), step in zip(part, self.steps, strict=True))
                 for part in used]  # fmt: skip
        self.begin = max(0, min(lows))
        self.elements = _up(max(highs) + 1 - self.begin)
        for part in self.groups:
            part[-1] = (before, 0, min(size[-1], max(0, s * self.rows[-1] - before)))  # all phases of the last axis

    def numbers(self, items: int, parts: int) -> list[int]:
        """Return what a call gives to loops."""
        return [
            -(-items // parts), prod(self.size), prod(self.count), self.room, self.windows, self.begin, self.elements,
            self.reach, prod(self.rows),
            *[prod(self.size[a + 1 :]) for a in range(len(self.size))],
            *self.count,
            *[prod(self.count[a + 1 :]) for a in range(len(self.count))],
            *self.steps,
            *[n for part in self.groups for one in part for n in one],
            *[base for _, base in self.bases],
        ]  # fmt: skip


def _part(phase: tuple[int, ...], axes: list[Any], rows: list[int]) -> list[tuple[int, int, int]]:
    """Return, for each axis, where a phase begins in room and in a plane, and how many elements it has."""
    found = []
    for at, row, (size, _, _, s, before, _) in zip(phase, rows, axes, strict=True):
        first = max(0, -((at - before) // s))
        start = first * s + at - before
        found.append((first, start, max(0, min(row - first, -((start - size) // s)))))
    return found


def _up(size: int) -> int:
    return -(-size // VECTORS) * VECTORS


layout_of = lru_cache(maxsize=256)(Layout)


class Plane:
    """The same for the loops of one kernel: numbers that come with each call."""

    def __init__(self, b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, type: str) -> None:
        self.b, self.rank, self.stride, self.phases, self.type = b, len(stride), stride, phases, type
        self.part, self.x_plane, self.out_plane, self.room, self.windows = b.sizes(5)
        self.begin, self.elements, self.reach, self.whole = b.sizes(4)
        self.x_steps, self.count, self.out_steps, self.steps = (b.sizes(self.rank) for _ in range(4))
        self.groups = [[b.sizes(3) for _ in range(self.rank)] for _ in range(phases[-1][0] + 1)]
        self.bases = b.sizes(bases)
        self.low, self.high = b.items()
        self.mine = self.low // self.part  # the room of this part of the items

    def own(self, base: Value, stretches: int) -> Value:
        """Return the room of this part: some stretches of numbers."""
        return self.b.behind(base, self.mine * (self.room * stretches), WIDTH[self.type])

    def _over_rows(self, ends: Sequence[Any], body: Callable[[list[Value]], None]) -> None:
        """Go over rows of neighbours."""
        b = self.b
        with b.over(*ends[:-1]) as outer, b.loop(0, ends[-1], free=True, short=True) as last:
            body([*outer, last])

    def _over_elements(self, body: Callable[[int, Any, Any], None]) -> None:
        """Go over the elements of the plane: `body(group, place in its room, place in the plane)`."""
        wide = self.stride[-1]
        for group, part in enumerate(self.groups):

            def one(where: list[Value], group: int = group, part: Any = part) -> None:
                here = where[-1] + part[-1][0]
                there = where[-1]
                for a, (first, start, _) in enumerate(part[:-1]):
                    here = here + (where[a] + first) * self.steps[a] * wide
                    there = there + (where[a] * self.stride[a] + start) * self.x_steps[a]
                body(group, here, there)

            self._over_rows([count for _, _, count in part], one)

    def over_windows(self, body: Callable[[Any, Any], None]) -> None:
        """Go over the windows: `body(place in a phase, place in the result)`."""

        def one(where: list[Value]) -> None:
            here = there = where[-1]
            for a, at in enumerate(where[:-1]):
                here = here + at * self.steps[a]
                there = there + at * self.out_steps[a]
            body(here, there)

        self._over_rows(self.count, one)

    def _lines(self, room: Value) -> Value:
        """Return where rows lie before they are parted, or after they are joined: behind the phases."""
        return room if self.stride[-1] == 1 else self.b.behind(room, self.room * len(self.phases), WIDTH[self.type])

    def to_phases(self, x: Value, item: Value, room: Value, storage: str) -> None:
        """Copy a plane into room."""
        b, type, wide = self.b, self.type, self.stride[-1]
        plane, lines = item * self.x_plane, self._lines(room)
        self._over_elements(
            lambda group, here, there: b.store(
                lines, self.room * (group * wide) + here, b.load(x, plane + there, storage, type), type
            )
        )
        if wide > 1:
            for group in range(len(self.groups)):
                with b.loop(0, self.whole, free=True) as f:
                    for number, (of, last) in enumerate(self.phases):
                        if of == group:
                            value = b.load(lines, self.room * (group * wide) + f * wide + last, type, type)
                            b.store(room, self.room * number + f, value, type)

    def from_phases(self, room: Value, out: Value, item: Value, storage: str) -> None:
        """Copy a plane out of room."""
        b, type, wide = self.b, self.type, self.stride[-1]
        plane, lines = item * self.x_plane, self._lines(room)
        if wide > 1:
            zero = b.constant(0.0, type)
            for group in range(len(self.groups)):
                known = {last: number for number, (of, last) in enumerate(self.phases) if of == group}
                with b.loop(self.begin, self.begin + self.elements, free=True) as f:
                    for last in range(wide):
                        value = b.load(room, self.room * known[last] + f, type, type) if last in known else zero
                        b.store(lines, self.room * (group * wide) + f * wide + last, value, type)
        self._over_elements(
            lambda group, here, there: b.store(
                out, plane + there, b.load(lines, self.room * (group * wide) + here, type, type), storage
            )
        )

    def blocks(self, begin: Any, length: Any, body: Callable[[Any, Any], None]) -> None:
        """Go over a stretch in blocks."""
        b = self.b
        with b.loop(0, (length + (BLOCK - 1)) // BLOCK) as number:
            start = number * BLOCK
            body(begin + start, begin + b.of("imin", start + BLOCK, length))


def stretches_of(phases: Phases, stride: tuple[int, ...]) -> int:
    """Return how many stretches of room the phases of a plane take."""
    wide = stride[-1]
    return len(phases) + ((phases[-1][0] + 1) * wide if wide > 1 else 0)


def in_groups(pattern: Pattern, most: int = AT_ONCE) -> list[list[tuple[int, ...]]]:
    """Cut places into as many as are gone over at once, row by row of the kernel, with their numbers in front."""
    groups: list[list[tuple[int, ...]]] = []
    rows: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for k, place in enumerate(pattern):
        rows.setdefault(place[:3], []).append((k, *place))
    for row_of in rows.values():
        if groups and len(groups[-1]) + len(row_of) <= most:
            groups[-1] += row_of
        else:
            groups.append(list(row_of))
    return groups


def starts_of(pattern: Pattern, p: Plane, of: Callable[[int], Value], sign: int = 1) -> dict[tuple[int, int], Value]:
    """Return where rows of the kernel begin, by base and shift; `of` gives the stretch of a phase."""
    width, found = WIDTH[p.type], {}
    for phase, base, shift, _ in pattern:
        offset = p.bases[base] + p.steps[-2] * shift if shift else p.bases[base]
        found[base, shift] = p.b.behind(of(phase), offset if sign > 0 else 0 - offset, width)
    return found


# ---- sums ----
def _write_sums(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, pattern: Pattern, storage: str, type: str,
    rows: int, weighted: bool, ending: str,
) -> None:  # fmt: skip
    """Sum up windows, each place of which has a weight if they are `weighted`; `ending`: "bias", "divide" or nothing.

    Some `rows` of windows are summed up at a time: elements that several of them have are read once.
    """
    width = WIDTH[type]
    x, weight, more, out, rooms = (b.pointer() for _ in range(5))
    p = Plane(b, stride, phases, bases, type)
    channels = b.size()
    room = p.own(rooms, stretches_of(phases, stride))
    starts = [b.behind(room, p.room * phase + p.bases[base], width) for phase, base in _planes(pattern)]
    with b.loop(p.low, p.high) as item:
        p.to_phases(x, item, room, storage)
        channel = item % channels
        factors = [
            b.load(weight, channel * len(pattern) + k, storage, type) if weighted else None for k in range(len(pattern))
        ]
        added = b.load(more, channel, storage, type) if ending == "bias" else None
        plane = item * p.out_plane
        ends = [*p.count[:-2], (p.count[-2] + (rows - 1)) // rows] if p.rank > 1 else []
        with b.over(*ends) as where:
            here: Any = 0
            there: Any = 0
            if where:
                where[-1] = b.of("imin", where[-1] * rows, p.count[-2] - rows)
            for a, at in enumerate(where):
                here, there = at * p.steps[a] + here, at * p.out_steps[a] + there
            with b.loop(0, p.count[-1], free=True, short=True) as f:
                elements: dict[tuple[int, ...], Value] = {}
                totals: list[Any] = [None] * rows
                for (_, base, shift, far), factor in zip(pattern, factors, strict=True):
                    for r in range(rows):
                        place = base, shift + r, far
                        if place not in elements:
                            row = p.steps[-2] * (shift + r) if shift + r else 0
                            elements[place] = b.load(starts[base], f + far + here + row, type, type)
                        value, before = elements[place], totals[r]
                        if factor is None:
                            totals[r] = value if before is None else before + value
                        else:
                            totals[r] = value * factor if before is None else b.of("fma", value, factor, before)
                for r, total in enumerate(totals):
                    at = f + there + (p.out_steps[-2] * r if r else 0)
                    if added is not None:
                        total = total + added
                    if ending == "divide":
                        total = total / b.load(more, at, type, type)
                    b.store(out, plane + at, total, storage)


def _planes(pattern: Pattern) -> list[tuple[int, int]]:
    """Return the phase of each base."""
    return [(phase, base) for base, phase in sorted({(base, phase) for phase, base, _, _ in pattern})]


# ---- sums of what windows give to their elements ----
def _write_spread(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int,  pattern: Pattern, storage: str, type: str,
    weighted: bool, divided: bool,
) -> None:  # fmt: skip
    """Give each element what its windows have, times the weights of their places."""
    width = WIDTH[type]
    g, weight, more, out, rooms, sums = (b.pointer() for _ in range(6))
    p = Plane(b, stride, phases, bases, type)
    channels = b.size()
    room, total = p.own(rooms, 1), p.own(sums, stretches_of(phases, stride))
    with b.loop(p.low, p.high) as item:
        plane = item * p.out_plane
        inside = b.behind(room, p.reach, width)

        def stage(here: Any, there: Any) -> None:
            value = b.load(g, plane + there, storage, type)
            if divided:
                value = value / b.load(more, there, type, type)
            b.store(inside, here, value, type)

        p.over_windows(stage)
        weights = item % channels * len(pattern)
        starts = starts_of(pattern, p, lambda phase: inside, -1)

        def block(begin: Any, end: Any) -> None:
            done = set()
            for group in in_groups(pattern):
                factors = {k: b.load(weight, weights + k, storage, type) if weighted else None for k, *_ in group}
                for phase in sorted({phase for _, phase, *_ in group}):
                    into = b.behind(total, p.room * phase, width)
                    with b.loop(begin, end, free=True) as f:
                        value: Any = b.load(into, f, type, type) if phase in done else None
                        for k, of, base, shift, far in group:
                            if of != phase:
                                continue
                            element, factor = b.load(starts[base, shift], f - far, type, type), factors[k]
                            if factor is None:
                                value = element if value is None else value + element
                            else:
                                value = element * factor if value is None else b.of("fma", element, factor, value)
                        b.store(into, f, value, type)
                    done.add(phase)

        p.blocks(p.begin, p.elements, block)
        p.from_phases(total, out, item, storage)


# ---- products: what weights get ----
def _write_products(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, pattern: Pattern, storage: str, type: str
) -> None:
    """Multiply what windows get with their elements, and sum up for each place; a row of places for each plane."""
    width = WIDTH[type]
    g, x, out, rooms, more = (b.pointer() for _ in range(5))
    p = Plane(b, stride, phases, bases, type)
    room, gradient = p.own(rooms, stretches_of(phases, stride)), p.own(more, 1)
    with b.loop(p.low, p.high) as item:
        p.to_phases(x, item, room, storage)
        plane = item * p.out_plane
        p.over_windows(lambda here, there: b.store(gradient, here, b.load(g, plane + there, storage, type), type))
        starts = starts_of(pattern, p, lambda phase: b.behind(room, p.room * phase, width))
        zero = b.constant(-0.0, type)
        for group in in_groups(pattern):

            def turn(f: Value, *before: Value, group: Any = group) -> list[Value]:
                factor = b.load(gradient, f, type, type)
                return [
                    b.of("sum_fma", factor, b.load(starts[base, shift], f + far, type, type), value)
                    for (_, _, base, shift, far), value in zip(group, before, strict=True)
                ]

            found = b.carry([zero] * len(group), 0, p.windows, turn)
            for (k, *_), value in zip(group, found, strict=True):
                b.store(out, item * len(pattern) + k, value, type)


# ---- the largest ----
def _write_largest(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, pattern: Pattern, storage: str, type: str
) -> None:
    """Find the largest element of each window and its place: of equals the first, but of NaNs the last."""
    width, numbers = WIDTH[type], {"f32": "i32", "f64": "i64"}[type]
    x, first, out, at, rooms, sums = (b.pointer() for _ in range(6))
    p = Plane(b, stride, phases, bases, type)
    room, best = p.own(rooms, stretches_of(phases, stride)), p.own(sums, 2)
    places = b.behind(best, p.room, width)
    with b.loop(p.low, p.high) as item:
        p.to_phases(x, item, room, storage)
        starts = starts_of(pattern, p, lambda phase: b.behind(room, p.room * phase, width))

        with b.loop(0, p.windows, free=True) as f:
            largest = b.constant(-float("inf"), type)
            place = b.constant(0, numbers)
            for k, (_, base, shift, far) in enumerate(pattern):
                value = b.load(starts[base, shift], f + far, type, type)
                more = b.of("or", b.is_greater(value, largest), b.of("ne", value, value, type="i1"))
                largest = b.select(more, value, largest)
                place = b.select(more, b.constant(k, numbers), place)
            b.store(best, f, largest, type)
            b.store(places, f, place, numbers)

        plane = item * p.out_plane

        def copy(here: Any, there: Any) -> None:
            b.store(out, plane + there, b.load(best, here, type, type), storage)
            # where all are -inf the place is the first that lies in the array
            place = b.of("maximum", b.load(places, here, numbers, numbers), b.load(first, there, "u8", numbers))
            b.store(at, plane + there, place, "u8")

        p.over_windows(copy)


def _write_to_places(b: Nest, rank: int, storage: str, type: str, whole: bool, repeats: bool) -> None:
    """Give what each window has to one of its places. See `to_places`."""
    g, at, further, out = (b.pointer() for _ in range(4))
    g_plane, out_plane, start, *numbers = b.sizes(3 + 2 * rank)
    count, steps = numbers[:rank], numbers[rank:]
    low, high = b.items()
    with b.loop(low, high) as item:
        plane, windows = item * out_plane, item * g_plane
        zero = b.constant(0.0, type)
        with b.loop(0, out_plane, free=True) as k:
            b.store(out, plane + k, zero, type)
        with b.over(*count) as where:
            window: Any = windows
            corner: Any = start
            for a, one in enumerate(where):
                inner = 1
                for size in count[a + 1 :]:
                    inner = size * inner
                window = window + one * inner
                corner = corner + one * steps[a]
            place = corner + b.load(further, b.load(at, window, "u8", "i64"), "i64", "i64")
            if not whole:  # places may come back changed from hooks of saved tensors: nothing is written elsewhere
                place = b.of("minimum", place, out_plane - 1, type="u64")
            place = plane + place
            value = b.load(g, window, storage, type)
            b.store(out, place, b.load(out, place, type, type) + value if repeats else value, type)


# ---- calls ----
def types_of(dtype: Any) -> tuple[str, str, Any]:
    """Return how numbers are stored and computed with, and the dtype of the latter."""
    storage = STORAGE[dtype]
    return (storage, "f64", dtype) if storage == "f64" else (storage, "f32", np.dtype(np.float32))


def computed(dtype: Any) -> Any:
    """Return the dtype that numbers are computed in: half precision in float32."""
    return types_of(dtype)[2]


def static_of(layout: Layout) -> tuple[Any, ...]:
    return layout.stride, layout.phases, len(layout.bases), layout.pattern


def sums(x: Any, weight: Any, layout: Layout, *, bias: Any = None, divisors: Any = None) -> Any:
    """Sum up the windows of planes (..., *size); weights (channels, places) if there are any."""
    storage, type, dtype = types_of(x.dtype)
    lead = x.shape[: x.ndim - len(layout.size)]
    out = np.empty((*lead, *layout.count), x.dtype)
    items = prod(lead)
    parts = parts_of(items, x.size * len(layout.pattern))
    ending = "bias" if bias is not None else "divide" if divisors is not None else ""
    rows = min(ROWS, layout.count[-2]) if len(layout.count) > 1 else 1
    function = compiled(_write_sums, *static_of(layout), storage, type, rows, weight is not None, ending)
    room = np.zeros((parts, stretches_of(layout.phases, layout.stride), layout.room), dtype)
    arrays = [x, weight, bias if bias is not None else divisors, out, room]
    run(function, arrays, [*layout.numbers(items, parts), lead[-1] if lead else 1], items, parts)
    return out


def spread(g: Any, weight: Any, layout: Layout, *, divisors: Any = None) -> Any:
    """Give elements what their windows have: the transpose of `sums`."""
    storage, type, dtype = types_of(g.dtype)
    lead = g.shape[: g.ndim - len(layout.size)]
    out = (np.empty if layout.is_reached else np.zeros)((*lead, *layout.size), g.dtype)
    items = prod(lead)
    parts = parts_of(items, out.size * len(layout.pattern))
    function = compiled(_write_spread, *static_of(layout), storage, type, weight is not None, divisors is not None)
    room = np.zeros((parts, layout.room), dtype)
    total = np.empty((parts, stretches_of(layout.phases, layout.stride), layout.room), dtype)
    arrays = [g, weight, divisors, out, room, total]
    run(function, arrays, [*layout.numbers(items, parts), lead[-1] if lead else 1], items, parts)
    return out


def products(g: Any, x: Any, layout: Layout) -> Any:
    """Return the products of what windows get and of their elements, summed up for each place: (..., places)."""
    storage, type, dtype = types_of(x.dtype)
    lead = x.shape[: x.ndim - len(layout.size)]
    items = prod(lead)
    parts = parts_of(items, x.size * len(layout.pattern))
    out = np.empty((*lead, len(layout.pattern)), dtype)
    function = compiled(_write_products, *static_of(layout), storage, type)
    room = np.zeros((parts, stretches_of(layout.phases, layout.stride), layout.room), dtype)
    gradient = np.zeros((parts, layout.room), dtype)
    run(function, [g, x, out, room, gradient], layout.numbers(items, parts), items, parts)
    return out


def largest(x: Any, layout: Layout, first: Any) -> tuple[Any, Any]:
    """Return the largest element of each window and its place; `first` is the first place of each that lies in the array."""
    storage, type, dtype = types_of(x.dtype)
    lead = x.shape[: x.ndim - len(layout.size)]
    items = prod(lead)
    parts = parts_of(items, x.size * len(layout.pattern))
    out = np.empty((*lead, *layout.count), x.dtype)
    at = np.empty(out.shape, np.uint8)
    function = compiled(_write_largest, *static_of(layout), storage, type)
    room = np.full((parts, stretches_of(layout.phases, layout.stride), layout.room), -np.inf, dtype)
    best = np.empty((parts, 2, layout.room), dtype)
    run(function, [x, first, out, at, room, best], layout.numbers(items, parts), items, parts)
    return out, at


def to_places(
    g: Any, at: Any, further: Any, start: int, steps: Sequence[int], size: Sequence[int], whole: bool, repeats: bool
) -> Any:
    """Add what windows have to one element of each, in planes of zeros.

    `further` says for each of 256 places how far it is from the first one of its window; windows begin at `start`, and `steps` apart
    along each axis. `whole` says that all places of all windows lie in the array, `repeats` that windows share some.
    """
    storage, type, dtype = types_of(g.dtype)
    lead, count = g.shape[: g.ndim - len(size)], g.shape[g.ndim - len(size) :]
    items = prod(lead)
    out = np.empty((*lead, *size), dtype)
    function = compiled(_write_to_places, len(size), storage, type, whole, repeats)
    parts = parts_of(items, out.size + 4 * g.size)
    run(function, [g, at, further, out], [prod(count), prod(size), start, *count, *steps], items, parts)
    return out.astype(g.dtype, copy=False)
