"""Slices whose norm is limited."""

from __future__ import annotations

import numpy as np

from .._core.primitive import general, vocabulary
from .norms import norm_dx, norm_jvp
from .reduce import is_small, sum_of_few

CLOSE = 1e-7  # torch's guard against a norm of zero


def _others(x, axis):
    return tuple(k for k in range(len(x.shape)) if k != axis)


def _size_and_scale(xp, x, p, axis, limit):
    """Return the norm of each slice, whether it is too large, and the factor that makes it small enough."""
    size = xp.norm(x, p=p, axis=_others(x, axis), keepdims=True)
    large = xp.greater(size, limit)
    return size, large, xp.where(large, limit / (size + CLOSE), 1)


def _scale_slope(xp, size, large, limit):
    return xp.where(large, -limit / xp.square(size + CLOSE), 0)


@general(shows="dim maxnorm=limit p self", dense=True, widens=True)
def renorm(xp, x, *, p, axis, limit):
    """Scale down the slices along an axis whose p-norm is larger than a limit."""
    if x.ndim == 2 and p == 2 and is_small(x, (1 - axis,)) and x.size:
        size = np.sqrt(sum_of_few(x * x, 1 - axis))
        large = size > limit
        if not np.count_nonzero(large):
            return x.copy()
        scale = np.where(large, limit / (size + CLOSE), x.dtype.type(1))
        return x * (scale if axis else scale[:, None])
    return (x * _size_and_scale(xp, x, p, axis, limit)[2]).astype(x.dtype, copy=False)


@renorm.vjp("x")
def renorm_dx(xp, g, x, p, axis, limit):
    others = _others(x, axis)
    size, large, scale = _size_and_scale(xp, x, p, axis, limit)
    along = xp.sum(xp.real(xp.conj(g) * x), axis=others, keepdims=True)
    return g * scale + norm_dx(xp, along * _scale_slope(xp, size, large, limit), x, size, p, others, True)


@renorm.jvp
def renorm_jvp(xp, t, x, p, axis, limit):
    size, large, scale = _size_and_scale(xp, x, p, axis, limit)
    moved = norm_jvp(xp, t, x, size, p, _others(x, axis), True)
    return t * scale + x * (moved * _scale_slope(xp, size, large, limit))


@renorm.batch
def renorm_batch(call, args, batched, size, *, p, axis, limit):
    # each row has slices of its own: rows and slices become one axis
    xp = vocabulary
    (x,) = args
    shape = tuple(x.shape)
    order = (0, axis + 1, *(k for k in range(1, len(shape)) if k != axis + 1))
    turned = xp.permute_dims(x, axes=order)
    rest = tuple(shape[k] for k in order[2:])
    out = call(xp.reshape(turned, shape=(size * shape[axis + 1], *rest)), p=p, axis=0, limit=limit)
    back = [0] * len(order)
    for at, k in enumerate(order):
        back[k] = at
    return xp.permute_dims(xp.reshape(out, shape=(size, shape[axis + 1], *rest)), axes=tuple(back))
