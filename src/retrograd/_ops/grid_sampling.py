"""Sampling at the points of a grid, between the elements of an array; and the grids of affine maps.

Along each axis a point has a few taps: elements near it, each with a weight that depends on where between them the point lies. A sample
is the sum over all combinations of taps. A tap outside the array counts nothing, or is brought inside, as `padding` says.
"""

from __future__ import annotations

import math
from itertools import product

from .._core.fused import fused
from .._core.primitive import linear, unmoved
from .pooling import in_memory
from .resizing import cubic_weights


def _clipped(xp, at, size):
    """Bring coordinates into an axis; NaN becomes 0."""
    return xp.where(xp.greater(at, 0), xp.where(xp.less(at, size - 1), at, size - 1), 0)


def _reflected(xp, at, size, align):
    """Fold coordinates back at the borders: those of the outermost elements' middles if `align`, else their edges."""
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if span == 0:
        return xp.where(xp.equal(at, at), at * 0, 0)
    beyond = at - low
    beyond = xp.where(xp.less(beyond, 0), -beyond, beyond)
    folds = xp.floor(beyond / span)
    rest = beyond - folds * span
    odd = xp.greater(folds - 2 * xp.floor(folds / 2), 0.5)
    return xp.where(odd, span - rest, rest) + low


def _padded(xp, at, size, padding, align):
    if padding == "reflection":
        at = _reflected(xp, at, size, align)
    return at if padding == "zeros" else _clipped(xp, at, size)


def _rounded(xp, value, half):
    """Round to half precision, in which torch takes every step; the array of floats stays one of float32."""
    return value if half is None else xp.astype(xp.astype(value, dtype=half), dtype="float32")


def _unpadded(xp, t, size, align, half=None):
    """Turn coordinates from -1 to 1 into those of elements."""
    scaled = _rounded(xp, _rounded(xp, t + 1, half) * ((size - 1) / 2 if align else size / 2), half)
    return scaled if align else _rounded(xp, scaled - 0.5, half)


def _taps(xp, t, size, mode, padding, align, half):
    """Return the taps of coordinates from -1 to 1 along an axis: element (as a float), whether it is inside, weight."""
    at = _unpadded(xp, t, size, align, half)
    if mode != "bicubic":
        at = _padded(xp, at, size, padding, align)
    if mode == "nearest":
        found = [(xp.round(at, decimals=0), None)]
    elif mode == "bilinear":
        below = xp.floor(at)
        share = _rounded(xp, at - below, half)
        found = [(below, _rounded(xp, 1 - share, half)), (below + 1, share)]
    else:
        below = xp.floor(at)
        weights = cubic_weights(at - below)
        found = [(_padded(xp, below + k - 1, size, padding, align), weights[k]) for k in range(4)]
    taps = []
    for place, weight in found:
        inside = xp.logical_and(xp.greater_equal(place, 0), xp.less_equal(place, size - 1))
        taps.append((xp.astype(xp.where(inside, place, 0), dtype="int64"), inside, weight))
    return taps


def _combinations(xp, grid, sizes, mode, padding, align, half=None):
    """Return, for every combination of taps: index into the flattened planes, whether it is inside, weights per axis."""
    ndim = len(sizes)
    lead = (slice(None),) * (grid.ndim - 1)
    axes = [
        _taps(xp, xp.getitem(grid, index=(*lead, ndim - 1 - k)), size, mode, padding, align, half)
        for k, size in enumerate(sizes)
    ]
    for row in product(*axes):
        index, inside = row[0][0], row[0][1]
        for (place, within, _), size in zip(row[1:], sizes[1:], strict=True):
            index = index * size + place
            inside = xp.logical_and(inside, within)
        yield index, inside, [weight for _, _, weight in row]


def _product(weights):
    total = None
    for weight in weights:
        if weight is not None:
            total = weight if total is None else total * weight
    return total


def _read(xp, flat, index, shape):
    """Read (N, C, points) at indices (N, ...) for all channels."""
    count, channels, points = shape
    wide = xp.broadcast_to(xp.reshape(index, shape=(count, 1, points)), shape=(count, channels, points))
    return xp.take_along(flat, wide, axis=2)


def _if_inside(xp, inside, values):
    """Put zeros in the place of those of (N, C, points) that lie outside; as a factor, 0 would turn infinity into NaN."""
    count, _, points = values.shape
    return xp.where(xp.reshape(inside, shape=(count, 1, points)), values, 0)


def sample(xp, x, grid, *, mode, padding, align, half):
    """Sample (N, C, ...) at a grid (N, ..., axes), in words of `xp`."""
    sizes, out = tuple(x.shape[2:]), tuple(grid.shape[1:-1])
    count, channels, points = x.shape[0], x.shape[1], math.prod(out)
    shape = (count, channels, points)
    flat = xp.reshape(x, shape=(count, channels, math.prod(sizes)))
    total = None
    for index, inside, weights in _combinations(xp, grid, sizes, mode, padding, align, half):
        values = _if_inside(xp, inside, _read(xp, flat, index, shape))
        weight = _product(weights)
        if weight is not None:
            weight = xp.reshape(_rounded(xp, weight, half), shape=(count, 1, points))
            values = _rounded(xp, values * weight, half)
        total = values if total is None else _rounded(xp, total + values, half)
    return xp.reshape(total, shape=(count, channels, *out))


# ---- the raw backward ----
def _slopes(xp, t, size, mode, padding, align):
    """Return how each tap's weight changes with the coordinate."""
    at = _unpadded(xp, t, size, align)
    scale = (size - 1) / 2 if align else size / 2
    if mode == "bicubic":
        share = at - xp.floor(at)
        rest = 1 - share
        far, near = _far_slope(share + 1), _near_slope(share)
        return [far * scale, near * scale, -_near_slope(rest) * scale, -_far_slope(rest + 1) * scale]
    slope = xp.ones_like(at) * scale
    if padding != "zeros":
        if padding == "reflection":
            ahead = _reflected(xp, at, size, align)
            low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
            beyond = at - low
            folds = xp.floor(xp.abs(beyond) / span) if span else beyond * 0
            turned = xp.equal(folds - 2 * xp.floor(folds / 2), xp.where(xp.less(beyond, 0), 0, 1))
            slope, at = xp.where(turned, -slope, slope), ahead
        moves = xp.logical_and(xp.greater(at, 0), xp.less(at, size - 1))
        slope = xp.where(moves, slope, 0)
    return [-slope, slope]


def _near_slope(x, a=-0.75):
    return (3 * (a + 2) * x - 2 * (a + 3)) * x


def _far_slope(x, a=-0.75):
    return (3 * a * x - 10 * a) * x + 8 * a


def _sample_back(xp, g, needed, residuals, x, grid, *, mode, padding, align, half):
    """Return the gradients of the array and of the grid."""
    module = xp.module
    sizes, out = x.shape[2:], grid.shape[1:-1]
    count, channels, points = x.shape[0], x.shape[1], math.prod(out)
    ndim, plane = len(sizes), math.prod(sizes)
    g = g.reshape(count, channels, points)
    flat = x.reshape(count, channels, plane)
    dx = module.zeros(x.size, x.dtype) if needed[0] else None
    dgrid = module.zeros(grid.shape, grid.dtype) if needed[1] else None
    moving = needed[1] and mode != "nearest"
    slopes = (
        [_slopes(xp, grid[..., ndim - 1 - k], n, mode, padding, align) for k, n in enumerate(sizes)] if moving else []
    )
    taps = 2 if mode == "bilinear" else 4
    for number, (index, inside, weights) in enumerate(_combinations(xp, grid, sizes, mode, padding, align)):
        if needed[0]:
            weight = _product(weights)
            share = g if weight is None else g * weight.astype(x.dtype, copy=False).reshape(count, 1, points)
            wide = module.broadcast_to(index.reshape(count, 1, points), g.shape)
            module.add.at(dx, in_memory(module, wide, 1, plane), _if_inside(xp, inside, share).reshape(-1))
        if moving:
            felt = _if_inside(xp, inside, _read(xp, flat, index, g.shape) * g).sum(1).reshape(inside.shape)
            for axis in range(ndim):
                change = slopes[axis][number // taps ** (ndim - 1 - axis) % taps]
                others = _product([change, *weights[:axis], *weights[axis + 1 :]])
                dgrid[..., ndim - 1 - axis] += felt * others
    return None if dx is None else dx.reshape(x.shape), dgrid


def _sampler(node_name, name):
    def run(xp, x, grid, *, mode, padding, align, half):
        return sample(xp, x, grid, mode=mode, padding=padding, align=align, half=half), None

    run.__name__ = name
    run.__doc__ = "Sample at the points of a grid; `half` is the dtype of arrays of half precision."
    operation = fused(node_name, reads_result=False)(run)
    operation.shows(
        "align_corners=align grid input=x",
        interpolation_mode=lambda node: ("bilinear", "nearest", "bicubic").index(node.params["mode"]),
        padding_mode=lambda node: ("zeros", "border", "reflection").index(node.params["padding"]),
    )
    operation.backward(_sample_back)
    operation.decomposition(sample)
    return operation


grid_sample_2d = _sampler("GridSampler2DBackward0", "grid_sample_2d")
grid_sample_3d = _sampler("GridSampler3DBackward0", "grid_sample_3d")


# ---- grids of affine maps ----
def _base(module, sizes, align, dtype):
    """Return the points (points, axes + 1) of the grid that maps onto itself, each with a one behind."""
    lines = []
    for n in sizes:
        line = module.linspace(-1, 1, n, dtype=dtype) if n > 1 else module.zeros(1, dtype)
        lines.append(line if align or n <= 1 else line * ((n - 1) / n))
    wide = module.meshgrid(*lines, indexing="ij")
    ones = module.ones(wide[0].shape, dtype)
    return module.stack([*wide[::-1], ones], -1).reshape(-1, len(sizes) + 1)


@linear(shows="align_corners=align size", batch=unmoved, widens=True)
def affine_grid(xp, theta, *, sizes, align):
    """Map the points of a grid by affine matrices (..., axes, axes + 1)."""
    base = _base(xp.module, sizes, align, theta.dtype)
    points = base @ theta.swapaxes(-1, -2)
    return points.reshape(*theta.shape[:-2], *sizes, len(sizes))


@affine_grid.vjp("theta")
def affine_grid_dtheta(xp, g, sizes, align):
    return xp.affine_grid_back(g, sizes=sizes, align=align)


@linear(batch=unmoved, widens=True)
def affine_grid_back(xp, g, *, sizes, align):
    """Sum up what the points of a grid give to the matrices: the transpose of `affine_grid`."""
    base = _base(xp.module, sizes, align, g.dtype)
    lead = g.shape[: g.ndim - 1 - len(sizes)]
    return g.reshape(*lead, len(base), len(sizes)).swapaxes(-1, -2) @ base


affine_grid_back.vjp("g")(lambda xp, g, sizes, align: xp.affine_grid(g, sizes=sizes, align=align))
