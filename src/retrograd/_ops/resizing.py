"""Resampling: each element of a result is a weighted sum of a few elements along each axis of an array.

Padding by what is in an array, interpolation and adaptive means are all of that kind. They differ in their `Taps`: which elements an
element of the result is made of, and with which weights. The transpose of such an operation is another one, with the taps turned round.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._core.numpy_namespace import is_half
from .._core.primitive import linear, unmoved
from .._core.shown import given
from .._native import nests, resampling


class Taps:
    """What each of `count` results along an axis is made of: element `places[i]` times `weights[i]` goes to result `results[i]`.

    Weights may be None: all are one. Two `Taps` are equal if they are the same object: makers are cached.
    """

    def __init__(self, size, count, results, places, weights=None):
        self.size, self.count = size, count
        self.results, self.places, self.weights = results, places, weights
        self._transposed = None
        self._steps = {}

    @property
    def transposed(self):
        """Return the taps of the transpose."""
        if self._transposed is None:
            order = np.argsort(self.places, kind="stable")
            weights = None if self.weights is None else self.weights[order]
            self._transposed = Taps(self.count, self.size, self.places[order], self.results[order], weights)
            self._transposed._transposed = self
        return self._transposed

    def table(self, dtype):
        """Return the same as a table, a row for each result; None if rows are empty or too long for loops."""
        found = self._steps.get(dtype, self)
        if found is self:
            found = self._steps[dtype] = self._new_table(dtype)
        return found

    def _new_table(self, dtype):
        steps = self.steps(np, dtype)
        if not 0 < len(steps) <= resampling.TERMS or not self.count:
            return None
        places = np.full((self.count, len(steps)), -1)
        weights = None if self.weights is None else np.zeros(places.shape, dtype)
        for term, (results, at, of) in enumerate(steps):
            rows = slice(None) if results is None else results
            places[rows, term] = at
            if of is not None:
                weights[rows, term] = of
        return resampling.Table(places, weights, bool((places < 0).any()))

    def steps(self, module, dtype):
        """Return the first tap of every result, then the second, and so on: (results or None for all, places, weights)."""
        key = module, dtype
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._new_steps(module, dtype)
        return found

    def _new_steps(self, module, dtype):
        order = np.argsort(self.results, kind="stable")
        results, places = self.results[order], self.places[order]
        weights = None if self.weights is None else self.weights[order]
        ranks = np.arange(len(results)) - np.searchsorted(results, results)
        steps = []
        for rank in range(int(ranks.max()) + 1 if len(ranks) else 0):
            chosen = ranks == rank
            into = results[chosen]
            of = None if weights is None else module.asarray(weights[chosen].astype(dtype))
            every = len(into) == self.count
            steps.append((None if every else module.asarray(into), module.asarray(places[chosen]), of))
        return steps


def _along(module, x, axis, taps):
    shape = (*x.shape[:axis], taps.count, *x.shape[axis + 1 :])
    lead = (slice(None),) * axis
    behind = (1,) * (x.ndim - axis - 1)
    out = None
    for results, places, weights in taps.steps(module, x.real.dtype):
        value = x.take(places, axis=axis)
        if weights is not None:
            value *= weights.reshape(-1, *behind)
        if out is None and results is None:
            out = value
        elif results is None:
            out += value
        else:
            if out is None:
                out = module.zeros(shape, x.dtype)
            out[(*lead, results)] += value
    return module.zeros(shape, x.dtype) if out is None else out


@linear(shows="", batch=unmoved, widens=True)
def resample(xp, x, *, taps):
    """Resample the last axes, from the last on; `taps` has what belongs to each of them, or None."""
    if nests.takes(x) and any(taps):
        tables = [None if one is None else one.table(resampling.computed(x.dtype)) for one in taps]
        if all([one is None or table is not None for one, table in zip(taps, tables, strict=True)]):
            return resampling.resampled(np.ascontiguousarray(x), tuple(tables))
    out = x
    for back, one in enumerate(reversed(taps), 1):
        if one is not None:
            out = _along(xp.module, out, x.ndim - back, one)
    return x.copy() if out is x else out


@resample.vjp("x")
def resample_dx(xp, g, taps):
    return xp.resample(g, taps=tuple([None if one is None else one.transposed for one in taps]))


def _factor(axis):
    """Read a scale factor as the caller gave it, if any."""

    def read(node):
        factors = given("factors")(node)
        return None if factors is None or factors[axis] is None else float(factors[axis])

    return read


_SMOOTH = {1: ("Linear1D",), 2: ("Bilinear2D", "Bicubic2D", "Bilinear2DAa", "Bicubic2DAa"), 3: ("Trilinear3D",)}
_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}
for _n, _kinds in _SMOOTH.items():
    _factors = {name: _factor(axis) for axis, name in enumerate(_SCALES[_n])}
    _nearest = f"UpsampleNearest{_n}DBackward0", f"UpsampleNearestExact{_n}DBackward0"
    resample.shows("output_size self_sym_sizes=given", *_nearest, **_factors)
    _smoothly = [f"Upsample{kind}Backward0" for kind in _kinds]
    resample.shows("align_corners output_size self_sym_sizes=given", *_smoothly, **_factors)
    resample.shows("padding", f"ReflectionPad{_n}DBackward0", f"ReplicationPad{_n}DBackward0")


# ---- taps ----
@lru_cache(maxsize=256)
def padding_taps(size, before, after, mode):
    """Pad by what is in an axis: "reflect", "replicate" or "circular"; negative numbers crop."""
    at = np.arange(-before, size + after)
    if mode == "replicate":
        places = np.clip(at, 0, size - 1)
    elif mode == "circular":
        first = max(-before, 0)
        left = size - first - max(-after, 0)  # torch crops before it goes round
        places = (at - first) % left + first if left > 0 else at
    else:
        places = (size - 1) - abs((size - 1) - at % max(2 * (size - 1), 1))
    return Taps(size, len(at), np.arange(len(at)), places)


@lru_cache(maxsize=256)
def nearest_taps(size, count, scale, exact):
    """Take the nearest element; `scale` is how far one result is from the next, in elements."""
    at = np.arange(count, dtype=np.float32)
    places = np.floor((at + np.float32(0.5) if exact else at) * np.float32(scale)).astype(np.int64)
    return Taps(size, count, np.arange(count), np.minimum(places, size - 1))


def _computed_in(dtype):
    """Return the dtype in which torch computes where results lie."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def _stored(weights, dtype):
    """Round weights as torch does, which stores them in the array's dtype."""
    return weights.astype(dtype).astype(np.float32) if is_half(dtype) else weights


def _centers(count, scale, align, dtype):
    """Return where results lie between elements."""
    at, scale = np.arange(count, dtype=dtype), dtype.type(scale)
    return at * scale if align else scale * (at + dtype.type(0.5)) - dtype.type(0.5)


@lru_cache(maxsize=256)
def linear_taps(size, count, scale, align, dtype):
    """Interpolate between two elements of a dtype."""
    stored, dtype = dtype, _computed_in(dtype)
    at = np.maximum(_centers(count, scale, align, dtype), 0)
    below = np.minimum(at.astype(np.int64), size - 1)
    share = np.clip(at - below.astype(dtype), 0, 1)
    if size == count and not share.any():  # what torch copies
        return Taps(size, count, np.arange(count), below)
    above = below + (below < size - 1)
    weights = _stored(np.stack([1 - share, share]), stored)
    return Taps(size, count, np.tile(np.arange(count), 2), np.concatenate([below, above]), weights.reshape(-1))


def _near_cubic(x, a):
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far_cubic(x, a):
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(share, a=-0.75):
    """Return the weights of the two elements before and the two behind; works on anything that has operators."""
    rest = 1 - share
    return _far_cubic(share + 1, a), _near_cubic(share, a), _near_cubic(rest, a), _far_cubic(rest + 1, a)


@lru_cache(maxsize=256)
def cubic_taps(size, count, scale, align, dtype):
    """Interpolate by cubic polynomials between four elements of a dtype, of which the edges repeat."""
    stored, dtype = dtype, _computed_in(dtype)
    at = _centers(count, scale, align, dtype)
    below = np.minimum(np.floor(at).astype(np.int64), size - 1)
    share = np.clip(at - below.astype(dtype), 0, 1)
    weights = _stored(np.stack(cubic_weights(share)), stored)
    places = np.clip(below + np.arange(-1, 3)[:, None], 0, size - 1)
    return Taps(size, count, np.tile(np.arange(count), 4), places.reshape(-1), weights.reshape(-1))


def _smooth(x, width):
    """Return the weight of an element at a distance, for a width of 2 (a triangle), 4 (cubic) or 6 (a windowed sinc)."""
    x = np.abs(x)
    if width == 2:
        return np.maximum(1 - x, 0)
    if width == 6:
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    return np.where(x < 1, _near_cubic(x, -0.5), np.where(x < 2, _far_cubic(x, -0.5), 0))


@lru_cache(maxsize=256)
def smooth_taps(size, count, scale, width, dtype):
    """Interpolate as above, but where there are fewer results than elements, over as many elements as one result stands for."""
    number = dtype.type
    scale = number(scale)
    reach = number(width * 0.5) * max(scale, number(1))
    inverse = number(1) / scale if scale >= 1 else number(1)
    centers = scale * (np.arange(count, dtype=dtype) + number(0.5))
    first = np.maximum((centers - reach + number(0.5)).astype(np.int64), 0)
    end = np.minimum((centers + reach + number(0.5)).astype(np.int64), size)
    results, places, weights = [], [], []
    for k in range(count):
        at = np.arange(first[k], end[k])
        share = _smooth((at - centers[k] + number(0.5)) * inverse, width)
        total = share.sum()
        results.append(np.full(len(at), k))
        places.append(at)
        weights.append(share / total if total else share)
    if not count:
        return Taps(size, 0, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Taps(size, count, np.concatenate(results), np.concatenate(places), np.concatenate(weights))


@lru_cache(maxsize=64)
def taps_of_bytes(taps):
    """Round weights as torch does for bytes: to as many binary places as products of 16-bit numbers allow."""
    if taps.weights is None:
        return taps
    top, places = float(taps.weights.max()), 0
    while places < 22 and int(0.5 + top * 2 ** (places + 1)) < 1 << 15:
        places += 1
    scaled = taps.weights.astype(np.float64) * 2**places
    weights = np.trunc(scaled + np.copysign(0.5, scaled)) / 2**places
    return Taps(taps.size, taps.count, taps.results, taps.places, weights)


@lru_cache(maxsize=256)
def adaptive_windows(size, count):
    """Return where `count` windows that cover an axis evenly begin and end."""
    at = np.arange(count)
    return at * size // max(count, 1), -(-(at + 1) * size // max(count, 1))


@lru_cache(maxsize=256)
def mean_taps(size, count):
    """Take the mean of windows that cover an axis evenly."""
    start, end = adaptive_windows(size, count)
    lengths = end - start
    results = np.repeat(np.arange(count), lengths)
    places = np.arange(len(results)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + start[results]
    return Taps(size, count, results, places, 1 / lengths[results])
