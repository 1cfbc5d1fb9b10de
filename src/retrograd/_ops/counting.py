"""Counting: histograms and the places of values among sorted boundaries. Nothing here has a derivative.

`lead` is how many leading axes are batches: what vmap adds, each with a histogram of its own.
"""

from __future__ import annotations

import itertools
import math

from .._core.numpy_namespace import is_half
from .._core.primitive import behind, front, general, vocabulary


# ---- places among sorted boundaries ----
def _bisect(module, rows, values, right):
    """Find the place of each value in its row; both have two axes. NaN compares as it does: with nothing."""
    low = module.zeros(values.shape, module.int64)
    high = module.full(values.shape, rows.shape[1], module.int64)
    line = module.arange(rows.shape[0])[:, None]
    for _ in range(rows.shape[1].bit_length()):
        open_ = low < high
        middle = (low + high) // 2
        seen = rows[line, module.minimum(middle, rows.shape[1] - 1)]
        after = ~(seen > values) if right else ~(seen >= values)
        low = module.where(open_ & after, middle + 1, low)
        high = module.where(open_ & ~after, middle, high)
    return low


@general(differentiable=False)
def searchsorted(xp, boundaries, values, *, right, dtype):
    """Count the boundaries before each value; boundaries have one axis, or the values' leading ones and one more."""
    module = xp.module
    if is_half(boundaries.dtype):
        boundaries, values = boundaries.astype(module.float32), values.astype(module.float32)
    values = module.asarray(values)
    if boundaries.ndim == 1 and not (boundaries.dtype.kind == "f" and module.isnan(boundaries).any()):
        return module.asarray(module.searchsorted(boundaries, values, "right" if right else "left")).astype(dtype)
    size = boundaries.shape[-1]
    count = 1 if boundaries.ndim == 1 else boundaries.size // size if size else 0
    if not size or not values.size:
        return module.zeros(values.shape, dtype)
    found = _bisect(module, boundaries.reshape(count, size), values.reshape(count, -1), right)
    return found.reshape(values.shape).astype(dtype)


@searchsorted.batch
def searchsorted_batch(call, args, batched, size, *, right, dtype):
    boundaries, values = args
    if not batched[0] and boundaries.ndim == 1:
        return call(boundaries, values, right=right, dtype=dtype)
    boundaries, values = front(boundaries, batched[0], size), front(values, batched[1], size)
    shape = tuple(values.shape)
    if boundaries.ndim == 2:  # one row for each sample, whatever the shape of its values
        values = vocabulary.reshape(values, shape=(size, values.size // max(size, 1)))
    return vocabulary.reshape(call(boundaries, values, right=right, dtype=dtype), shape=shape)


# ---- histograms ----
def _rows(xp, lead, arrays, run):
    """Run on every sample of a batch and put the results, tuples of arrays, together."""
    if not lead:
        return run(*arrays)
    shape = arrays[0].shape[:lead]
    results = [run(*[a[at] for a in arrays]) for at in itertools.product(*map(range, shape))]
    for first, other in ((results[0], one) for one in results[1:]):
        for a, b in zip(first, other, strict=True):
            if a.shape != b.shape:
                raise RuntimeError(f"vmap: the samples' results have different shapes: {a.shape} and {b.shape}")
    columns = [xp.module.stack(column) for column in zip(*results, strict=True)]
    return tuple(column.reshape(*shape, *column.shape[1:]) for column in columns)


def _number(value):
    return f"{float(value):g}"


def even_edges(module, low, high, bins, dtype):
    """Return the edges of even bins: counted from both ends, as torch's linspace."""
    kept, dtype = dtype, module.dtype(module.float32) if is_half(dtype) else dtype
    low, high = dtype.type(low), dtype.type(high)
    step = (high - low) / dtype.type(bins)
    k = module.arange(bins + 1)
    return module.where(k < (bins + 1) // 2, low + step * k, high - step * (bins - k)).astype(kept)


@general(differentiable=False, batch=behind)
def histc(xp, x, *, bins, low, high, lead):
    """Count elements in even bins between two bounds, or between the extremes if the bounds are equal."""
    module = xp.module

    def one(values):  # half precision is rounded at every step, as torch's
        kind = values.dtype.type
        left, right = kind(low), kind(high)
        within = left == right and values.size
        if within:
            left, right = values[values.argmin()], values[values.argmax()]
        if left == right:
            left, right = left - kind(1), right + kind(1)
        if not (math.isfinite(left) and math.isfinite(right)):
            raise RuntimeError(f"torch.histc: range of [{_number(left)}, {_number(right)}] is not finite")
        if left > right:
            raise RuntimeError("torch.histc: max must be larger than min")
        if not within:
            values = values[(values >= left) & (values <= right)]
        places = ((values - left) * kind(bins) / (right - left)).astype(module.int64)
        return (module.bincount(module.minimum(places, bins - 1), minlength=bins).astype(values.dtype),)

    return _rows(xp, lead, [x.reshape(*x.shape[:lead], -1)], one)[0]


def extremes(values):
    """Return the bounds of bins over values: their own, a step to each side of a single one, [0, 1] for none."""
    return (values.min(), values.max()) if values.size else (0, 1)


def bounds_of(values, bounds, dim):
    low, high = extremes(values) if bounds is None else bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{_number(low)}, {_number(high)}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {_number(low)} max {_number(high)} for "
            f"dimension {dim}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@general(differentiable=False, outputs=2, batch=behind)
def histogram(xp, x, *others, bins, bounds, density, weighted, lead):
    """Count elements; `others` are the edges, where `bins` is None, and the weights, where there are any."""
    flat = [x.reshape(*x.shape[:lead], -1, 1)]
    weights = [others[-1].reshape(*x.shape[:lead], -1)] if weighted else []
    given = [others[0]] if bins is None else []

    def one(points, *rest):
        weight = rest[-1] if weighted else None
        edges = rest[0] if given else even_edges(xp.module, *bounds_of(points, bounds, 0), bins, x.dtype)
        return count_points(xp.module, points, [edges], weight, density), edges

    return _rows(xp, lead, [*flat, *given, *weights], one)


def count_points(module, points, edges, weight, density):
    """Count the rows of a matrix in a grid of bins, one axis for each column."""
    kept = module.full(len(points), bool(edges))  # no columns, no points
    place = module.zeros(len(points), module.int64)
    for column, own in zip(points.T, edges, strict=True):
        kept &= (column >= own[0]) & (column <= own[-1])
        bins = len(own) - 1
        at = module.searchsorted(own, column, "right") - 1
        place = place * bins + module.clip(at, 0, bins - 1)  # the last edge belongs to the last bin
    shape = tuple(len(own) - 1 for own in edges)
    total = math.prod(shape)
    weights = None if weight is None else weight[kept].astype(module.float64)
    hist = module.bincount(place[kept], weights, minlength=total).astype(points.dtype).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for axis, own in enumerate(edges):
            hist = hist / module.diff(own).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return hist


@general(differentiable=False, batch=behind)
def bincount(xp, x, *weights, minlength, lead):
    """Count how often each number occurs, or add up its weights; samples of a batch must need equally many bins."""

    module = xp.module

    def one(numbers, *weight):
        if not weight:
            return (module.bincount(numbers, minlength=minlength).astype(module.int64),)
        dtype = module.float32 if weight[0].dtype == module.float32 else module.float64
        return (module.bincount(numbers, weight[0].astype(module.float64), minlength).astype(dtype),)

    return _rows(xp, lead, [x, *weights], one)[0]
