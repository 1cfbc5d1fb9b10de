"""Padding of the last axis by what is in it: mirrored, repeated at the ends, or going round."""

from __future__ import annotations

from functools import lru_cache

from .._core.primitive import linear


@lru_cache(maxsize=64)
def _places(module, size, before, after, mode):
    """Return where each element of the padded axis comes from."""
    at = module.arange(-before, size + after)
    if mode == "replicate":
        return module.clip(at, 0, size - 1)
    if mode == "circular":
        return at % size
    period = max(2 * (size - 1), 1)
    return (size - 1) - abs((size - 1) - at % period)


@linear
def pad_last(xp, x, *, before, after, mode):
    """Pad the last axis; `mode` is torch's: reflect, replicate or circular."""
    return xp.module.take(x, _places(xp.module, x.shape[-1], before, after, mode), axis=-1)


@pad_last.vjp("x")
def pad_last_dx(xp, g, x_shape, before, after, mode):
    return xp.pad_last_add(g, size=x_shape[-1], before=before, after=after, mode=mode)


@linear
def pad_last_add(xp, g, *, size, before, after, mode):
    """Add what padding copied to where it came from: the transpose of `pad_last`."""
    places = _places(xp.module, size, before, after, mode)
    out = g[..., before : before + size].copy()
    for part in (slice(0, before), slice(before + size, None)):  # only the ends repeat anything
        xp.module.add.at(out, (..., places[part]), g[..., part])
    return out


@pad_last_add.vjp("g")
def pad_last_add_dg(xp, g, before, after, mode):
    return xp.pad_last(g, before=before, after=after, mode=mode)


pad_last.batch(
    lambda call, args, batched, size, *, before, after, mode: call(args[0], before=before, after=after, mode=mode)
)
pad_last_add.batch(
    lambda call, args, batched, size_, *, size, before, after, mode: call(
        args[0], size=size, before=before, after=after, mode=mode
    )
)
