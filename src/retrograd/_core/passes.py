"""Large arrays in few passes over memory: the same values as NumPy's own functions, where those are slow.

NumPy's `where` branches on every element, its `maximum` with a number is three times slower than its `clip`, its `power` calls the C
library for each element. Each function here falls back to NumPy's for small
arrays, where the call costs more than the loop, and for dtypes it does not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _thresholds

LARGE, STRIP = _thresholds.LARGE, _thresholds.COLUMN_STRIP
BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}
_ONES: dict[tuple[int, str], np.ndarray] = {}
_NUMBERS: dict[Any, np.ndarray] = {}
# without the question whether somebody takes the call over, which costs as much as joining small arrays
concatenate = getattr(np.concatenate, "_implementation", np.concatenate)


def clip(x: Any, low: Any, high: Any) -> Any:
    """Bound an array by numbers, either of which may be None; NaN stays."""
    if type(x) is np.ndarray and x.size >= LARGE and x.dtype in BITS:
        return np.clip(x, -np.inf if low is None else low, np.inf if high is None else high)
    out = (
        x if low is None else np.maximum(low, x)
    )  # of equal numbers NumPy takes the second: x keeps the sign of its zero
    return out if high is None else np.minimum(high, out)


def integer_power(x: np.ndarray, exponent: int) -> np.ndarray:
    """Raise to a small positive integer by squaring."""
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if not exponent:
            return result  # type: ignore[return-value]
        x = x * x


def triangle(x: np.ndarray, upper: bool, k: int) -> np.ndarray:
    """Keep a triangle of matrices: whole stretches of strips of rows, and a mask where the diagonal crosses a strip."""
    rows, columns = x.shape[-2:]
    out = np.zeros(x.shape, x.dtype)
    for top in range(0, rows, STRIP):
        end = min(top + STRIP, rows)
        first, last = top + k + (not upper), end - 1 + k + (not upper)  # where the first and the last row are cut
        first, last = min(max(first, 0), columns), min(max(last, 0), columns)
        whole = (..., slice(top, end), slice(last, None) if upper else slice(first))
        out[whole] = x[whole]
        cut = (..., slice(top, end), slice(first, last))
        lower = np.tri(end - top, last - first, k + top - first - upper, bool)
        np.copyto(out[cut], x[cut], where=~lower if upper else lower)
    return out


def times_transposed(rows: Any, weights: Any, few: int, width: int, columns: int) -> Any:
    """Multiply rows, of shape (few, width), by the transpose of a matrix of shape (columns, width).

    For a few rows and an out that is not tiny, OpenBLAS takes two to three times as long with a transposed right side
    as with a transposed left side, which is the same product turned.
    """
    if 2 < few <= 32 and 4 * few <= columns and few * columns > 1200 and width >= 32:
        turned = rows.T.copy() if few * width * columns <= 1_000_000 else rows.T
        return weights.dot(turned).T.copy()
    return rows.dot(weights.T)


def ones(count: int, dtype: Any) -> np.ndarray:
    """Return ones that are kept for the next call."""
    key = count, dtype.char
    found = _ONES.get(key)
    if found is None:
        if len(_ONES) > 16:
            _ONES.clear()
        found = _ONES[key] = np.ones(count, dtype)
    return found


def number(module: Any, value: float, dtype: Any) -> Any:
    """Return a number as a 0-d array that is kept: NumPy's ufuncs take those in half the time of Python's numbers."""
    if module is not np:
        return value
    found = _NUMBERS.get((value, dtype))
    if found is None:
        if len(_NUMBERS) > 256:
            _NUMBERS.clear()
        found = _NUMBERS[value, dtype] = np.array(value, dtype)
    return found
