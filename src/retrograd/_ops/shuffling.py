"""Channels into pixels and back, and channels of groups among each other: copies in another order."""

from __future__ import annotations

from .._core.primitive import behind, linear, unmoved


@linear(shows="upscale_factor=factor", batch=unmoved)
def pixel_shuffle(xp, x, *, factor):
    *lead, channels, height, width = x.shape
    count = len(lead)
    apart = x.reshape(*lead, channels // (factor * factor), factor, factor, height, width)
    order = [*range(count + 1), count + 3, count + 1, count + 4, count + 2]
    return apart.transpose(order).copy().reshape(*lead, channels // (factor * factor), height * factor, width * factor)


@linear(shows="downscale_factor=factor", batch=unmoved)
def pixel_unshuffle(xp, x, *, factor):
    *lead, channels, height, width = x.shape
    count = len(lead)
    apart = x.reshape(*lead, channels, height // factor, factor, width // factor, factor)
    order = [*range(count + 1), count + 2, count + 4, count + 1, count + 3]
    return apart.transpose(order).copy().reshape(*lead, channels * factor * factor, height // factor, width // factor)


pixel_shuffle.vjp("x")(lambda xp, g, factor: xp.pixel_unshuffle(g, factor=factor))
pixel_unshuffle.vjp("x")(lambda xp, g, factor: xp.pixel_shuffle(g, factor=factor))


@linear(batch=behind)
def channel_shuffle(xp, x, *, groups, axis):
    """Take channels, which are at `axis`, from each group in turn."""
    lead, channels, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = x.reshape(*lead, groups, channels // groups, *rest)
    return apart.swapaxes(axis, axis + 1).copy().reshape(x.shape)


@channel_shuffle.vjp("x")
def channel_shuffle_dx(xp, g, x_shape, groups, axis):
    return xp.channel_shuffle(g, groups=x_shape[axis] // groups, axis=axis)
