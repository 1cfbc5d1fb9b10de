"""Convolution of each channel with a kernel of its own, place of the kernel by place of the kernel.

Note [Phases]
A product with patches has one row for each channel here, too little for BLAS. Instead each place of the kernel is one number that
multiplies the whole channel, shifted. Images of a channel lie in `room`, padded with zeros, so that a shift is an offset in one
stretch of memory: what runs over the end of a row is computed too, and left out afterwards. With a stride, every stride-th
element lies in a room of its own, a phase, and a place of the kernel reads one phase. Where channels are small, several lie in one
stretch, and each place of the kernel is a number for each of them.
The two transposes go the same ways back: gradients lie in `room`, with zeros around them.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from .._core import parallel
from .scratch import RUN, scratch

WORTH = 1 << 12  # elements of a channel from which NumPy's loop for each place of the kernel pays
PATCHES = 1 << 21  # elements of an image's patches beyond which they fill the cache: below, they and BLAS are as quick


def applies(xp, x, channels_out, places, kernel, groups, strided=False):
    """Tell whether a convolution has one kernel for each channel, and large images.

    With a stride, patches take long to put together: then it is enough that channels are large.
    """
    count, channels = x.shape[:2]
    return (
        1 < groups == channels == channels_out
        and count * prod(places) >= WORTH
        and (strided or channels * prod(kernel) * prod(places) >= PATCHES)
        and xp.module is np
        and x.dtype.kind == "f"
    )


@lru_cache(maxsize=256)
def _layout(size, places, kernel, stride, padding, dilation):
    """Return the shape of the room; phase and offset of each place of the kernel; where each phase lies in it and in an image."""
    axes = list(zip(size, places, kernel, stride, padding, dilation, strict=True))
    room = tuple(p + (k - 1) * d // s for _, p, k, s, _, d in axes)
    steps = [prod(room[a + 1 :]) for a in range(len(room))]
    phases = list(product(*map(range, stride)))
    taps = []
    for place in product(*map(range, kernel)):
        reached = [k * d for k, d in zip(place, dilation, strict=True)]
        phase = tuple(r % s for r, s in zip(reached, stride, strict=True))
        offset = sum(r // s * step for r, s, step in zip(reached, stride, steps, strict=True))
        taps.append((phases.index(phase), offset))
    parts = []
    for phase in phases:
        here, there = [], []
        for at, whole, (length, _, _, s, before, _) in zip(phase, room, axes, strict=True):
            first = max(0, -((at - before) // s))
            start = first * s + at - before
            count = max(0, min(whole - first, -((start - length) // s)))
            here.append(slice(first, first + count))
            there.append(slice(start, start + count * s, s))
        parts.append((tuple(here), tuple(there)))
    return room, tuple(taps), tuple(parts)


def _over_channels(work, x, room):
    """Call `work(channels, images)` for as many of both as stay in the cache, on several threads."""
    count, channels = x.shape[:2]
    width = max(1, parallel.BLOCK // prod(room))
    images = _cut(count, min(width, count))
    parts = [(c, n) for c in _cut(channels, max(1, width // count)) for n in images]
    parallel.over_blocks(lambda k, _: work(*parts[k]), len(parts), 1, x.size >= parallel.WIDE, by_rows=True)


def _cut(end, step):
    return [slice(at, min(at + step, end)) for at in range(0, end, step)]


def _of(x, channels, images):
    """Return some images of some channels, channels first."""
    return x[images, channels].swapaxes(0, 1)


def _copy(into, images):
    """Copy images; rows as single elements, which NumPy takes more quickly than their numbers."""
    run = images.shape[-1] * images.itemsize
    if run <= RUN and into.strides[-1] == images.strides[-1] == images.itemsize:
        into, images = into.view(f"V{run}"), images.view(f"V{run}")
    into[...] = images


class _Room:
    """Zeros in one stretch of memory for each phase, with more behind them for those that are shifted."""

    def __init__(self, xp, use, phases, shape, reach, dtype):
        self.rows, self.width = shape[0], prod(shape[1:])
        size = prod(shape)
        self.memory = scratch(xp, use, (phases, size + reach), dtype)
        self.memory[...] = 0
        self.phases = [part[:size].reshape(shape) for part in self.memory]

    def shifted(self, phase, offset):
        """Return a phase from an offset on, a row for each channel."""
        return self.memory[phase, offset : offset + self.rows * self.width].reshape(self.rows, self.width)

    def blocks(self):
        """Cut long rows, of which there is one, so that they stay in the cache."""
        return _cut(self.width, parallel.BLOCK)


def _in_phases(xp, images, room, parts, reach):
    """Put some images into room by phases."""
    made = _Room(xp, "phases", len(parts), (*images.shape[:2], *room), reach, images.dtype)
    for phase, (here, there) in zip(made.phases, parts, strict=True):
        _copy(phase[(..., *here)], images[(..., *there)])
    return made


def _in_room(xp, images, room):
    """Put some gradients into room, as a row for each channel."""
    made = _Room(xp, "room", 1, (*images.shape[:2], *room), 0, images.dtype)
    _copy(made.phases[0][(..., *map(slice, images.shape[2:]))], images)
    return made.shifted(0, 0)


def convolve(xp, x, weight, bias, size, stride, padding, dilation):
    """Return the convolution (n, channels, *size)."""
    room, taps, parts = _layout(x.shape[2:], tuple(size), weight.shape[2:], stride, padding, dilation)
    out = np.empty((*x.shape[:2], *size), x.dtype)
    factors = weight.reshape(len(weight), -1)
    reach = max(offset for _, offset in taps)

    def work(channels, images):
        source = _in_phases(xp, _of(x, channels, images), room, parts, reach)
        total, more = scratch(xp, "sums", (2, source.rows, source.width), x.dtype)
        for block in source.blocks():
            here, added = total[:, block], more[:, block]
            for k, (phase, offset) in enumerate(taps):
                factor = factors[channels, k : k + 1]
                np.multiply(source.shifted(phase, offset)[:, block], factor, added if k else here)
                if k:
                    np.add(here, added, here)
            if bias is not None:
                np.add(here, bias[channels, None], here)
        made = total.reshape(source.phases[0].shape)
        _copy(_of(out, channels, images), made[(..., *map(slice, size))])

    _over_channels(work, x, room)
    return out


def convolve_input(xp, g, weight, size, stride, padding, dilation):
    """Return the gradient (n, channels, *size) of the input."""
    room, taps, parts = _layout(tuple(size), g.shape[2:], weight.shape[2:], stride, padding, dilation)
    out = np.empty((*g.shape[:2], *size), g.dtype)
    reached = sum(prod(part.stop - part.start for part in here) for here, _ in parts)
    if reached < prod(size):  # no place of the kernel meets the rest
        out[...] = 0
    factors = weight.reshape(len(weight), -1)
    reach = max(offset for _, offset in taps)

    def work(channels, images):
        gradient = _in_room(xp, _of(g, channels, images), room)
        made = _Room(xp, "phases", len(parts), (len(gradient), images.stop - images.start, *room), reach, g.dtype)
        more = scratch(xp, "sums", gradient.shape, g.dtype)
        for block in made.blocks():
            added = more[:, block]
            for k, (phase, offset) in enumerate(taps):
                np.multiply(gradient[:, block], factors[channels, k : k + 1], added)
                into = made.shifted(phase, offset)[:, block]
                np.add(into, added, into)
        found = _of(out, channels, images)
        for phase, (here, there) in zip(made.phases, parts, strict=True):
            _copy(found[(..., *there)], phase[(..., *here)])

    _over_channels(work, g, room)
    return out


def convolve_weight(xp, g, x, size, stride, padding, dilation):
    """Return the gradient (channels, 1, *size) of the weight; images are added up in float64."""
    room, taps, parts = _layout(x.shape[2:], g.shape[2:], tuple(size), stride, padding, dilation)
    totals = np.empty((len(taps), x.shape[1], len(x)), g.dtype)
    reach = max(offset for _, offset in taps)

    def work(channels, images):
        gradient = _in_room(xp, _of(g, channels, images), room)
        source = _in_phases(xp, _of(x, channels, images), room, parts, reach)
        apart = (source.rows, images.stop - images.start, prod(room))
        gradient = gradient.reshape(apart)
        for k, (phase, offset) in enumerate(taps):
            totals[k, channels, images] = np.vecdot(gradient, source.shifted(phase, offset).reshape(apart))

    _over_channels(work, x, room)
    return totals.sum(2, dtype=np.float64).T.astype(g.dtype).reshape(x.shape[1], 1, *size)
