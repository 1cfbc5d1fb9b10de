"""Convolutions of small images: patches and their products in one call for many images, which threads share.

An item is an image. It is copied into room with zeros around it, then its patches (channels * kernel, places) into room beside it. A
product follows (Note [Patches] in `_ops/convolution_kernels.py`): BLAS's, or one that is compiled for its sizes where they are small
(`tiles`). Rows of patches are written up to a whole vector: what runs over the end of one is overwritten by the next. Products are cut
so that OpenBLAS takes one thread for each: its threads and ours would take the processor from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from .. import _thresholds
from . import blas, tiles
from .nests import KNOWN, LANES, Nest, Value, compiled, filled, parts_of, run, takes
from .trace import STORAGE

WIDTH: Final = {"f32": 4, "f64": 8}
COLUMNS: Final = 64  # of a product: with less BLAS is slow
TURNED: Final = 1 << 12  # numbers of a matrix that are transposed more quickly than BLAS takes them transposed
RESULTS: Final = 3  # channels up to which direct loops go over an image once
ADDED: Final = 11  # elements of a row of the kernel that are added at a time


class Layout:
    """Where the patches of an image lie. `size` is that of the image, `count` how many places a kernel has along each axis."""

    def __init__(
        self, channels: int, made: int, groups: int, size: tuple[int, ...], count: tuple[int, ...], kernel: tuple[int, ...],
        stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
    ) -> None:  # fmt: skip
        axes = list(zip(size, count, kernel, stride, padding, dilation, strict=True))
        # what kernels reach, and what of the image they never do
        self.room = [max(s + p, (c - 1) * t + (k - 1) * d + 1) for s, c, k, t, p, d in axes]
        self.steps = [prod(self.room[a + 1 :]) for a in range(len(axes))]
        self.channels, self.made, self.groups = channels, made, groups
        self.size, self.count, self.kernel, self.padding = size, count, kernel, padding
        self.jumps = [s * n for s, n in zip(stride, self.steps, strict=True)]  # from one place to the next
        self.reaches = [
            d * n for d, n in zip(dilation, self.steps, strict=True)
        ]  # from one element of the kernel to the next
        self.stride = stride[-1]
        self.places, self.inner, self.rows = prod(count), channels // groups * prod(kernel), made // groups
        blocks = -(-self.places * self.rows * self.inner // blas.ALONE)
        self.columns = -(-self.places // max(1, blocks))  # of a product
        self.image = channels * prod(self.room) + LANES * self.stride
        self.before = self.reaches[-1] * (kernel[-1] - 1)  # numbers in front of patches that are read and not used
        self.patches: int = self.before + channels * prod(kernel) * self.places + LANES
        self.turns = LANES <= self.rows <= TURNED // max(1, self.places)

    @property
    def is_worth(self) -> bool:
        """Tell whether products are large enough, and patches small enough."""
        enough = self.columns >= min(self.places, COLUMNS) and self.columns
        return bool(enough) and self.patches <= _thresholds.PATCHES and prod(self.kernel) > 1

    @property
    def is_small(self) -> bool:
        """Tell whether products of its own, for these sizes alone, are quicker than BLAS's and than direct loops."""
        return self.columns >= self.places and self.rows > RESULTS and max(self.inner, self.places) <= tiles.SUMMED

    def numbers(self, part: int) -> list[int]:
        """Return what a call gives to loops."""
        return [
            part, self.channels, self.groups, self.rows, self.inner, self.places, self.columns, self.image, self.patches,
            self.before, prod(self.size), prod(self.room), prod(self.kernel),
            *self.size, *self.padding, *self.kernel, *self.steps, *self.jumps, *self.reaches, *self.count,
            *[prod(self.size[a + 1 :]) for a in range(len(self.size))],
            *[prod(self.count[a + 1 :]) for a in range(len(self.count))],
            *[prod(self.kernel[a + 1 :]) for a in range(len(self.kernel))],
        ]  # fmt: skip

    def static(self, dtype: Any) -> tuple[Any, ...]:
        """Return what loops are written for."""
        last = self.count[-1] if self.count[-1] <= KNOWN else 0
        return len(self.size), last, self.stride, STORAGE[dtype]

    def work(self, images: int) -> int:
        """Return how much is done for some images; 0.2 us are a thousand. Threads pay from 400 us on: one is woken in 50."""
        return images * (self.patches + self.patches * self.rows // 16)


layout_of = lru_cache(maxsize=256)(Layout)


def takes_images(*arrays: Any) -> bool:
    """Tell whether kernels are for such arrays: of one precision that BLAS has, one of them large."""
    dtype = arrays[0].dtype
    return all(a.dtype == dtype for a in arrays) and takes(*arrays) and STORAGE[dtype] in blas.addresses()


class _Image:
    """A layout as loops see it: numbers that come with each call."""

    def __init__(self, b: Nest, rank: int, last: int, stride: int, type: str) -> None:
        self.b, self.rank, self.stride, self.type = b, rank, stride, type
        self.part, self.channels, self.groups, self.rows, self.inner, self.places = b.sizes(6)
        self.columns, self.image, self.patches, self.before, self.plane, self.padded, self.kernel_size = b.sizes(7)
        self.size, self.padding, self.kernel, self.steps, self.jumps, self.reaches, self.count = (
            b.sizes(rank) for _ in range(7)
        )
        self.size_steps, self.count_steps, self.kernel_steps = (b.sizes(rank) for _ in range(3))
        self.last: Any = last or self.count[-1]
        self.low, self.high = b.items()
        self.mine = self.low // self.part  # the room of this part of the items

    def own(self, base: Value, numbers: Value) -> Value:
        """Return the room of this part."""
        return self.b.behind(base, self.mine * numbers, WIDTH[self.type])

    def rooms(self, images: Value, patches: Value) -> tuple[Value, Value]:
        """Return the room of this part for an image and for patches."""
        return self.own(images, self.image), self.behind(self.own(patches, self.patches), self.before)

    def behind(self, base: Value, numbers: Any) -> Value:
        """Return the place of a number behind another."""
        return self.b.behind(base, numbers, WIDTH[self.type])

    def over_elements(self, body: Any) -> None:
        """Go over an image: `body(place in room, place in the image)`."""
        b = self.b
        with b.over(self.channels, *self.size[:-1]) as (channel, *where):
            here = channel * self.padded + self.padding[-1]
            there = channel * self.plane
            for a, at in enumerate(where):
                here = here + (at + self.padding[a]) * self.steps[a]
                there = there + at * self.size_steps[a]
            with b.loop(0, self.size[-1], free=True, short=True) as f:
                body(here + f, there + f)

    def over_rows(self, axes: int, body: Callable[[Any, Any], None]) -> None:
        """Go over rows of patches: `body(place in room, place in patches)`; of the kernel's last `axes` axes the first element alone."""
        b = self.b
        with b.over(self.channels, *self.kernel[: self.rank - axes]) as (channel, *place):
            here, row = channel * self.padded, channel * self.kernel_size
            for a, at in enumerate(place):
                here = here + at * self.reaches[a]
                row = row + at * self.kernel_steps[a]
            there = row * self.places
            with b.over(*self.count[:-1]) as where:
                for a, at in enumerate(where):
                    here, there = here + at * self.jumps[a], there + at * self.count_steps[a]
                body(here, there)

    def cut(self, x: Value, item: Value, image: Value, patches: Value) -> None:
        """Copy the patches of an image into room."""
        b, type = self.b, self.type
        start = item * (self.channels * self.plane)
        self.over_elements(lambda here, there: b.store(image, here, b.load(x, start + there, type, type), type))

        def copy(here: Any, there: Any) -> None:
            known = self.stride == 1 and isinstance(self.last, int)
            with b.loop(0, filled(self.last) if known else self.last, free=True, whole=known) as f:
                b.store(patches, there + f, b.load(image, here + f * self.stride, type, type), type)

        self.over_rows(0, copy)

    def put_together(self, patches: Value, image: Value, out: Value, item: Value, kernel: int, dilation: int) -> None:
        """Add patches where they came from: with a stride of one all that a row of the kernel gives to a row of the image at a time."""
        b, type = self.b, self.type
        zero = b.constant(0.0, type)
        with b.loop(0, self.channels * self.padded, free=True) as f:
            b.store(image, f, zero, type)

        def add(here: Any, there: Any) -> None:
            with b.loop(0, self.last, free=True) as f:
                at = here + f * self.stride
                b.store(image, at, b.load(image, at, type, type) + b.load(patches, there + f, type, type), type)

        def add_row(here: Any, there: Any) -> None:
            known = isinstance(self.last, int)
            end = self.last + (kernel - 1) * dilation
            with b.loop(0, filled(end) if known else end, free=True, whole=known) as f:
                value = b.load(image, here + f, type, type)
                for k in range(kernel):
                    at = b.of("sub", f, k * dilation, type="u64")
                    element = b.load(patches, there + self.places * k + f - k * dilation, type, type)
                    value = value + b.select(b.of("lt", at, self.last, type="i1"), element, zero)
                b.store(image, here + f, value, type)

        self.over_rows(*((1, add_row) if kernel else (0, add)))
        start = item * (self.channels * self.plane)
        self.over_elements(lambda here, there: b.store(out, start + there, b.load(image, here, type, type), type))

    def over_products(self, body: Any) -> None:
        """Go over groups and blocks of columns: `body(group, first column, how many)`."""
        b = self.b
        with b.over(self.groups, (self.places + self.columns - 1) // self.columns) as (group, block):
            first = block * self.columns
            body(group, first, b.of("imin", self.columns, self.places - first))


def _write_convolution(b: Nest, rank: int, last: int, stride: int, type: str, has_bias: bool) -> None:
    """Multiply the weight (groups, rows, inner) with patches."""
    x, weight, bias, out, images, rooms, function = (b.pointer() for _ in range(7))
    p = _Image(b, rank, last, stride, type)
    image, patches = p.rooms(images, rooms)
    with b.loop(p.low, p.high) as item:
        p.cut(x, item, image, patches)
        made = p.behind(out, item * (p.groups * p.rows * p.places))
        if has_bias:
            with b.loop(0, p.groups * p.rows) as channel:
                value = b.load(bias, channel, type, type)
                with b.loop(0, p.places, free=True) as f:
                    b.store(made, channel * p.places + f, value, type)

        def multiply(group: Value, first: Value, count: Value) -> None:
            matrix = p.behind(weight, group * (p.rows * p.inner))
            columns = p.behind(patches, group * (p.inner * p.places) + first)
            into = p.behind(made, group * (p.rows * p.places) + first)
            b.product(
                function,
                matrix,
                columns,
                into,
                (p.rows, count, p.inner),
                (p.inner, p.places, p.places),
                type,
                add=has_bias,
            )

        p.over_products(multiply)


def _write_weight(b: Nest, rank: int, last: int, stride: int, type: str, turns: bool) -> None:
    """Multiply patches with the transpose of gradients; each part of the images has a sum of its own: (groups, inner, rows)."""
    g, x, totals, turned, images, rooms, function = (b.pointer() for _ in range(7))
    p = _Image(b, rank, last, stride, type)
    image, patches = p.rooms(images, rooms)
    across = p.own(turned, p.groups * p.rows * p.places)
    total = p.own(totals, p.groups * p.rows * p.inner)
    with b.loop(p.low, p.high) as item:
        p.cut(x, item, image, patches)
        given = p.behind(g, item * (p.groups * p.rows * p.places))
        if turns:
            with b.over(p.groups, p.places) as (group, place), b.loop(0, p.rows, free=True, short=True) as row:
                value = b.load(given, (group * p.rows + row) * p.places + place, type, type)
                b.store(across, (group * p.places + place) * p.rows + row, value, type)

        def multiply(group: Value, first: Value, count: Value) -> None:
            left = p.behind(patches, group * (p.inner * p.places) + first)
            into = p.behind(total, group * (p.rows * p.inner))
            if turns:
                right, step = p.behind(across, (group * p.places + first) * p.rows), p.rows
            else:
                right, step = p.behind(given, group * (p.rows * p.places) + first), p.places
            sizes, steps = (p.inner, p.rows, count), (p.places, step, p.rows)
            b.product(function, left, right, into, sizes, steps, type, turned=not turns, add=True)

        p.over_products(multiply)


def _write_input(b: Nest, rank: int, last: int, stride: int, type: str, kernel: int, dilation: int) -> None:
    """Multiply the transposed weight (groups, inner, rows) with gradients, and put the patches together."""
    g, weight, out, images, rooms, function = (b.pointer() for _ in range(6))
    p = _Image(b, rank, last, stride, type)
    image, patches = p.rooms(images, rooms)
    with b.loop(p.low, p.high) as item:
        given = p.behind(g, item * (p.groups * p.rows * p.places))

        def multiply(group: Value, first: Value, count: Value) -> None:
            matrix = p.behind(weight, group * (p.rows * p.inner))
            columns = p.behind(given, group * (p.rows * p.places) + first)
            into = p.behind(patches, group * (p.inner * p.places) + first)
            b.product(function, matrix, columns, into, (p.inner, count, p.rows), (p.rows, p.places, p.places), type)

        p.over_products(multiply)
        p.put_together(patches, image, out, item, kernel, dilation)


# ---- calls ----
def _run(
    write: Any, layout: Layout, arrays: Sequence[Any], images: int, parts: int, product: Any, *static: Any
) -> None:
    dtype = arrays[0].dtype
    rooms = np.zeros((parts, layout.image), dtype), np.empty((parts, layout.patches), dtype)
    function = compiled(write, *layout.static(dtype), *static)
    call = [*arrays, *rooms, product]
    run(function, call, layout.numbers(-(-images // parts)), images, parts)


def _product(
    layout: Layout, dtype: Any, sizes: tuple[int, int, int], steps: tuple[int, int, int], add: bool = False
) -> Any:
    """Return memory with the address of the product that loops call: BLAS's, or that for these sizes alone."""
    type = STORAGE[dtype]
    return tiles.cell(*sizes, steps, type, add) if layout.is_small else blas.cell(type)


def convolve(x: Any, weight: Any, bias: Any, layout: Layout) -> Any:
    """Return the convolution (n, channels made, *count) of images with a weight (channels made, channels / groups, *kernel)."""
    out = np.empty((len(x), layout.made, *layout.count), x.dtype)
    arrays = [np.ascontiguousarray(a) for a in (x, weight, weight if bias is None else bias)]
    sizes, steps = (layout.rows, layout.places, layout.inner), (layout.inner, layout.places, layout.places)
    product = _product(layout, x.dtype, sizes, steps, bias is not None)
    parts = parts_of(len(x), layout.work(len(x)))
    _run(_write_convolution, layout, [*arrays, out], len(x), parts, product, bias is not None)
    return out


def convolve_weight(g: Any, x: Any, layout: Layout) -> Any:
    """Return the gradient of the weight, with the last axes as one."""
    parts = parts_of(len(x), layout.work(len(x)))
    totals = np.zeros((parts, layout.groups, layout.inner, layout.rows), x.dtype)
    turned = np.empty((parts, layout.made * layout.places if layout.turns else 0), x.dtype)
    arrays = [np.ascontiguousarray(g), np.ascontiguousarray(x), totals, turned]
    sizes, steps = (layout.inner, layout.rows, layout.places), (layout.places, layout.rows, layout.rows)
    product = _product(layout, x.dtype, sizes, steps, True) if layout.turns else blas.cell(STORAGE[x.dtype])
    _run(_write_weight, layout, arrays, len(x), parts, product, layout.turns)
    return np.ascontiguousarray(totals.sum(0).swapaxes(-1, -2)).reshape(layout.made, layout.inner)


def convolve_input(g: Any, weight: Any, layout: Layout) -> Any:
    """Return the gradient of the images."""
    out = np.empty((len(g), layout.channels, *layout.size), g.dtype)
    turned = weight.reshape(layout.groups, layout.rows, layout.inner).swapaxes(-1, -2).copy()
    at_once = layout.kernel[-1] if layout.stride == 1 and layout.kernel[-1] <= ADDED else 0
    static = (at_once, layout.reaches[-1]) if at_once else (0, 0)
    parts = parts_of(len(g), layout.work(len(g)))
    sizes, steps = (layout.inner, layout.places, layout.rows), (layout.rows, layout.places, layout.places)
    product = _product(layout, g.dtype, sizes, steps)
    _run(_write_input, layout, [np.ascontiguousarray(g), turned, out], len(g), parts, product, *static)
    return out
