"""What an array holds, in a few numbers and a histogram."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core.arrays import is_meta, raw_leaf

BINS = 24
LARGEST = 1 << 18  # elements that are counted one by one; of larger arrays, evenly spaced ones


class Statistics(NamedTuple):
    """Numbers about the finite elements of an array, of complex ones about their magnitudes, and counts of the others."""

    least: float | None  # None: there is no finite element
    greatest: float | None
    mean: float | None
    deviation: float | None
    nans: int
    infinities: int
    zeros: float  # their share
    bars: tuple[int, ...]  # a histogram between least and greatest; the highest bar is 100

    @property
    def is_finite(self) -> bool:
        """Tell whether there is neither NaN nor an infinity."""
        return not self.nans and not self.infinities


def host_array(array: Any) -> np.ndarray | None:
    """Return the elements of an array of any kind as NumPy has them; None if there are none to read."""
    array = raw_leaf(array)
    if array is None or is_meta(array):
        return None
    if hasattr(array, "get") and not isinstance(array, (np.ndarray, np.generic)):  # CuPy
        array = array.get()
    found = np.asarray(array)
    return found if found.dtype.kind in "biufcV" else None


def statistics_of(array: Any) -> Statistics | None:
    """Describe an array; None if it has no elements, or none that could be read."""
    values = host_array(array)
    if values is None or values.size == 0:
        return None
    if values.size > LARGEST:
        return _of_many(values)
    return _described(_wide(values.reshape(-1)), None)


def _of_many(values: np.ndarray) -> Statistics:
    """Count what is not finite in all elements, and describe evenly spaced ones."""
    flat = values.reshape(-1)
    nans = infinities = 0
    if values.dtype.kind in "fcV":
        wide = flat if values.dtype.kind in "fc" else flat.astype(np.float32)
        if not np.isfinite(wide).all():
            nans, infinities = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    step = -(-flat.size // LARGEST)
    return _described(_wide(flat[::step]), (nans, infinities))


def _wide(flat: np.ndarray) -> np.ndarray:
    """Return elements as float64; `V` is the kind of bfloat16 and its kin."""
    return np.abs(flat).astype(np.float64) if flat.dtype.kind == "c" else flat.astype(np.float64)


def _described(flat: np.ndarray, counted: tuple[int, int] | None) -> Statistics:
    finite = flat[np.isfinite(flat)]
    if counted is None:
        nans = int(np.isnan(flat).sum())
        counted = nans, flat.size - finite.size - nans
    if not finite.size:
        return Statistics(None, None, None, None, *counted, 0.0, ())
    least, greatest = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        width = greatest - least
        if 0 < width < np.inf:
            places = np.minimum((finite - least) * (BINS / width), BINS - 1).astype(np.int64)
            heights = np.bincount(places, minlength=BINS)
        else:
            heights = np.zeros(BINS, np.int64)
            heights[BINS // 2] = 1
        mean, deviation = float(finite.mean()), float(finite.std())
    bars = tuple(np.ceil(heights * (100 / heights.max())).astype(int).tolist())
    return Statistics(least, greatest, mean, deviation, *counted, float(np.mean(finite == 0)), bars)


def is_finite(array: Any) -> bool:
    """Tell whether an array has neither NaN nor an infinity."""
    values = host_array(array)
    if values is None or values.dtype.kind not in "fcV":
        return True
    return bool(np.isfinite(values if values.dtype.kind in "fc" else values.astype(np.float32)).all())


def is_zero(array: Any) -> bool:
    """Tell whether an array has elements, and all are zero."""
    values = host_array(array)
    return values is not None and values.size > 0 and not values.astype(bool).any()
