"""Where the elements of windows lie in a plane, for windows that are too large or too irregular to go through place by place.

All arrays are of indices into the flattened plane: one row for each window, one column for each element. A window that has fewer
elements than others repeats one of its own.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .resizing import adaptive_windows


def _combined(rows, sizes):
    """Combine the elements (windows, elements) along each axis into places of planes."""
    places = np.zeros((1, 1), np.int64)
    for row, size in zip(rows, sizes, strict=True):
        places = places[:, None, :, None] * size + row[None, :, None, :]
        places = places.reshape(places.shape[0] * places.shape[1], places.shape[2] * places.shape[3])
    return places


@lru_cache(maxsize=32)
def of_windows(windows):
    """Return places for windows of a fixed size, and how many there are along each axis."""
    rows = []
    for size, kernel, stride, padding, dilation, count in windows:
        start = np.arange(count)[:, None] * stride - padding
        first = -(-np.maximum(-start, 0) // dilation)
        last = (size - 1 - start) // dilation
        rows.append(start + np.clip(np.arange(kernel), first, last) * dilation)
    return _combined(rows, [w.size for w in windows]), tuple([w.count for w in windows])


@lru_cache(maxsize=32)
def of_adaptive(sizes, counts):
    """Return places for windows that cover each axis evenly."""
    rows = []
    for size, count in zip(sizes, counts, strict=True):
        start, end = adaptive_windows(size, count)
        longest = int((end - start).max()) if count else 1
        rows.append(np.minimum(start[:, None] + np.arange(longest), end[:, None] - 1))
    return _combined(rows, sizes)


def of_fractions(samples, sizes, kernel, counts):
    """Return places for windows whose starts each plane draws: `samples` holds a number below one per plane and axis."""
    lead = samples.shape[:-1]
    places = np.zeros((*lead, 1, 1), np.int64)
    for axis, (size, width, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
        row = _starts(samples[..., axis], size, width, count)[..., None] + np.arange(width)
        places = places[..., :, None, :, None] * size + row[..., None, :, None, :]
        places = places.reshape(*lead, places.shape[-4] * places.shape[-3], places.shape[-2] * places.shape[-1])
    return places


def _starts(samples, size, width, count):
    """Return increasing starts of windows, the last of which ends with the axis."""
    starts = np.full((*samples.shape, count), size - width, np.int64)
    if count > 1:
        kind = samples.dtype.type
        alpha = kind(size - width) / kind(count - 1)
        at = np.arange(count - 1).astype(samples.dtype)
        shifted = ((at + samples[..., None]) * alpha).astype(np.int64)
        starts[..., :-1] = shifted - (samples[..., None] * alpha).astype(np.int64)
    return starts
