"""Convolutions in direct loops, for images whose planes are large enough to be gone over as one long row.

All planes of an image lie in room, in phases (Note [Phases] in `windows`). A few results are summed up at a time: the weights of some
places stay in registers while a strip of a plane is gone over, and what is read of the plane serves all these results. So nearly every
instruction multiplies, where patches would have to be written and read again, nine times as large as the image for a kernel of 3 x 3.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from .nests import Nest, Value, compiled, parts_of, run
from .windows import (
    WIDTH,
    Layout,
    Pattern,
    Phases,
    Plane,
    in_groups,
    starts_of,
    static_of,
    stretches_of,
    types_of,
)

RESULTS: Final = 3  # that are summed up at a time
FACTORS: Final = 9  # places whose weights for these results stay in registers
GRADIENTS: Final = 4  # results whose weights get their gradients at a time
SUMS: Final = 24  # sums of these that stay in registers
STRIP: Final = 1 << 10  # numbers that are gone over at a time: sums and what they read stay in the first cache
LANES: Final = 16
SHARED: Final = 4  # images: results of fewer are shared out
FULL: Final = 0.7  # of what is gone over: as much must be results, not what lies between rows
LONG: Final = 128  # numbers of a plane from which results are quicker than by patches and BLAS
LONG_SUMS: Final = 192  # and sums for weights
PLACES: Final = 25  # of a kernel: loops name every one of them, and take long to compile
ROOM: Final = 1 << 24  # numbers of all planes of an image


def span_of(layout: Layout) -> int:
    """Return how many numbers of a plane are gone over."""
    last: int = sum((count - 1) * step for count, step in zip(layout.count, layout.steps, strict=True))
    return -(-(last + 1) // LANES) * LANES


def takes(layout: Layout, channels: int, long: int = LONG) -> bool:
    """Tell whether direct loops are quicker than patches and BLAS."""
    span, room = span_of(layout), channels * stretches_of(layout.phases, layout.stride) * layout.room
    return 1 < len(layout.pattern) <= PLACES and long <= span <= prod(layout.count) / FULL and room <= ROOM


class _Planes(Plane):
    """The planes of an image, of which each group of channels makes some results."""

    def __init__(self, b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, type: str) -> None:
        super().__init__(b, stride, phases, bases, type)
        self.span, self.channels, self.sets, self.made = b.sizes(4)  # channels and results are those of a group
        self.stretch = self.room * stretches_of(phases, stride)  # numbers of a plane in room

    def behind(self, base: Value, numbers: Any) -> Value:
        return self.b.behind(base, numbers, WIDTH[self.type])

    def images(self, rooms: Value) -> Value:
        """Return the room of this part for the planes of an image."""
        return self.behind(rooms, self.mine * (self.stretch * (self.channels * self.sets)))

    def stage(self, x: Value, image: Value, room: Value, storage: str) -> None:
        """Copy an image into room."""
        planes = self.channels * self.sets
        with self.b.loop(0, planes) as plane:
            self.to_phases(x, image * planes + plane, self.behind(room, plane * self.stretch), storage)

    def starts(self, room: Value, pattern: Pattern, plane: Value) -> dict[tuple[int, int], Value]:
        """Return where rows of the kernel begin in a plane."""
        here = self.behind(room, plane * self.stretch)
        return starts_of(pattern, self, lambda phase: self.behind(here, self.room * phase))

    def over_results(
        self, block: int, share: Value, shares: Value, body: Callable[[Value, Value, Value], None]
    ) -> None:
        """Go over a share of the results, some at a time: `body(group, first of them, first that has not been there before)`."""
        b = self.b
        blocks = (self.made + (block - 1)) // block
        with b.over(self.sets) as (group,), b.loop(share * blocks // shares, (share + 1) * blocks // shares) as number:
            body(group, b.of("imin", number * block, self.made - block), number * block)


def _write_forward(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, pattern: Pattern, storage: str, type: str,
    block: int, has_bias: bool,
) -> None:  # fmt: skip
    """Sum up windows of all channels of a group, for `block` results at a time. An item is a share of the results of an image."""
    x, weight, bias, out, rooms, sums = (b.pointer() for _ in range(6))
    p = _Planes(b, stride, phases, bases, type)
    shares = b.size()
    room, sums = p.images(rooms), p.own(sums, block)
    totals = [p.behind(sums, p.room * j) for j in range(block)]
    with b.loop(p.low, p.high) as item:
        image = item // shares
        p.stage(x, image, room, storage)

        def results(group: Value, first: Value, _new: Value) -> None:
            number = group * p.made + first
            begins = [b.load(bias, number + j, type, type) if has_bias else b.constant(0.0, type) for j in range(block)]
            with b.loop(0, (p.span + (STRIP - 1)) // STRIP) as strip:
                start = strip * STRIP
                end = b.of("imin", start + STRIP, p.span)
                with b.loop(start, end, free=True) as f:
                    for total, begin in zip(totals, begins, strict=True):
                        b.store(total, f, begin, type)
                with b.loop(0, p.channels) as channel:
                    starts = p.starts(room, pattern, group * p.channels + channel)
                    for part in in_groups(pattern, FACTORS):
                        factors = {
                            (k, j): b.load(weight, ((number + j) * p.channels + channel) * len(pattern) + k, type, type)
                            for k, *_ in part for j in range(block)
                        }  # fmt: skip
                        with b.loop(start, end, free=True, single=True) as f:
                            values = [b.load(total, f, type, type) for total in totals]
                            for k, _, base, shift, far in part:
                                element = b.load(starts[base, shift], f + far, type, type)
                                values = [b.of("fma", element, factors[k, j], v) for j, v in enumerate(values)]
                            for total, value in zip(totals, values, strict=True):
                                b.store(total, f, value, type)
            plane = (image * (p.sets * p.made) + number) * p.out_plane

            def copy(here: Any, there: Any) -> None:
                for j, total in enumerate(totals):
                    b.store(out, plane + p.out_plane * j + there, b.load(total, here, type, type), storage)

            p.over_windows(copy)

        p.over_results(block, item % shares, shares, results)


def _write_weight(
    b: Nest, stride: tuple[int, ...], phases: Phases, bases: int, pattern: Pattern, storage: str, type: str, block: int
) -> None:
    """Multiply gradients with what windows read, and sum up. An item is an image; each part of the images has sums of its own."""
    g, x, sums, rooms, gradients = (b.pointer() for _ in range(5))
    p = _Planes(b, stride, phases, bases, type)
    room = p.images(rooms)
    results, places = p.sets * p.made, len(pattern)
    given = p.behind(gradients, p.mine * (p.room * results))
    sums = p.behind(sums, p.mine * (results * p.channels * places))
    zero = b.constant(-0.0, type)
    with b.loop(p.low, p.high) as item:
        p.stage(x, item, room, storage)
        with b.loop(0, results) as result:
            plane, own = (item * results + result) * p.out_plane, p.behind(given, result * p.room)
            p.over_windows(lambda here, there: b.store(own, here, b.load(g, plane + there, storage, type), type))

        def gradients_of(group: Value, first: Value, new: Value) -> None:
            own = [p.behind(given, (group * p.made + first + j) * p.room) for j in range(block)]
            with b.loop(0, p.channels) as channel:
                starts = p.starts(room, pattern, group * p.channels + channel)
                for part in in_groups(pattern, SUMS // (2 * block)):

                    def turn(f: Value, *before: Value, part: Any = part) -> list[Value]:
                        factors = [b.load(one, f, type, type) for one in own]
                        found = []
                        for n, (_, _, base, shift, far) in enumerate(part):
                            element = b.load(starts[base, shift], f + far, type, type)
                            found += [
                                b.of("sum_fma", factor, element, before[n * block + j])
                                for j, factor in enumerate(factors)
                            ]
                        return found

                    found = iter(b.carry([zero] * (len(part) * block), 0, p.span, turn, single=True))
                    for k, *_ in part:
                        for j in range(block):
                            at = ((group * p.made + first + j) * p.channels + channel) * places + k
                            more = b.select(b.of("lt", first + j, new, type="i1"), zero, next(found))
                            b.store(sums, at, b.load(sums, at, type, type) + more, type)

        nothing = b.constant(0, "i64")
        p.over_results(block, nothing, b.constant(1, "i64"), gradients_of)


# ---- calls ----
def _numbers(layout: Layout, items: int, parts: int, channels: int, groups: int, made: int) -> list[int]:
    return [*layout.numbers(items, parts), span_of(layout), channels // groups, groups, made // groups]


def _rooms(layout: Layout, parts: int, channels: int, dtype: Any) -> Any:
    return np.zeros((parts, channels, stretches_of(layout.phases, layout.stride), layout.room), dtype)


def convolve(x: Any, weight: Any, bias: Any, layout: Layout, groups: int) -> Any:
    """Return the convolution (n, channels made, *count) of images with a weight (channels made, channels / groups, *kernel)."""
    storage, type, dtype = types_of(x.dtype)
    (images, channels), made = x.shape[:2], len(weight)
    block = min(RESULTS, made // groups)
    out = np.empty((images, made, *layout.count), x.dtype)
    # threads share the results of a few images
    shares = 1 if images >= SHARED else min(SHARED // images, -(-made // (groups * block)))
    parts = parts_of(images * shares, out.size * prod(weight.shape[1:]) // LANES)
    arrays = [np.ascontiguousarray(a) for a in (x, weight, weight if bias is None else bias)]
    rooms, sums = _rooms(layout, parts, channels, dtype), np.empty((parts, block, layout.room), dtype)
    function = compiled(_write_forward, *static_of(layout), storage, type, block, bias is not None)
    numbers = _numbers(layout, images * shares, parts, channels, groups, made)
    run(function, [*arrays, out, rooms, sums], [*numbers, shares], images * shares, parts)
    return out


def convolve_weight(g: Any, x: Any, layout: Layout, groups: int) -> Any:
    """Return the gradient (channels made, channels / groups, places) of the weight."""
    storage, type, dtype = types_of(x.dtype)
    (images, channels), made = x.shape[:2], g.shape[1]
    shape = (made, channels // groups, len(layout.pattern))
    parts = parts_of(images, g.size * prod(shape[1:]) // LANES)
    arrays = [np.ascontiguousarray(g), np.ascontiguousarray(x), np.zeros((parts, *shape), dtype)]
    rooms, gradients = _rooms(layout, parts, channels, dtype), np.zeros((parts, made, layout.room), dtype)
    function = compiled(_write_weight, *static_of(layout), storage, type, min(GRADIENTS, made // groups))
    run(function, [*arrays, rooms, gradients], _numbers(layout, images, parts, channels, groups, made), images, parts)
    return arrays[2].sum(0)
