"""float32 functions that neither NumPy nor scipy compute quickly, in blocks that stay in the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _thresholds
from . import parallel
from .passes import LARGE, integer_power

BLOCK = _thresholds.KERNEL_BLOCK
F32 = np.dtype(np.float32)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def in_blocks(
    function: Callable[..., None], *arrays: np.ndarray, block: int = BLOCK, dtype: Any = np.float32
) -> np.ndarray:
    """Call `function(*blocks, out)` for the blocks of arrays of one shape."""
    out = np.empty(arrays[0].shape, dtype)
    blockwise(function, [*[np.ascontiguousarray(a).reshape(-1) for a in arrays], out.reshape(-1)], block)
    return out


def blockwise(function: Callable[..., None], rows: list[np.ndarray], block: int = BLOCK) -> None:
    """Call `function(*blocks)` for the blocks of rows of one length, on several threads where there are many."""
    size = rows[0].size
    many = size >= parallel.WIDE
    parallel.over_blocks(
        lambda start, end: function(*[row[start:end] for row in rows]),
        size,
        max(block, parallel.BLOCK) if many else block,
        many,
    )


def _polynomial(coefficients: Sequence[Any], z: np.ndarray) -> np.ndarray:
    value: np.ndarray = z * coefficients[0]
    for coefficient in coefficients[1:-1]:
        value += coefficient
        value *= z
    value += coefficients[-1]
    return value


def _zeta_block(x: np.ndarray, out: np.ndarray, s: int) -> None:
    # Ten terms of the sum, then its Euler-Maclaurin formula
    out.fill(0)
    for k in range(10):
        term = x + k
        np.divide(1, term, out=term)
        out += integer_power(term, s)
    y = x + 10
    np.divide(1, y, out=y)
    square = y * y
    rising = [math.prod(range(s, s + 2 * k - 1)) / math.factorial(2 * k) for k in range(1, 6)]
    series = _polynomial(tuple(b * r for b, r in zip(_BERNOULLI, rising, strict=True))[::-1], square)
    series *= y
    series += 0.5
    series *= y
    series += 1 / (s - 1)
    series *= integer_power(y, s - 1)
    out += series


def hurwitz_zeta(x: Any, s: int) -> np.ndarray | None:
    """Compute the sum of (x + k)^-s over k for a float32 array of positive numbers; None where it cannot."""
    if not is_large(x) or not 2 <= s <= 4 or not x.min() > 0:  # or NaN
        return None
    return in_blocks(lambda a, out: _zeta_block(a, out, s), x)


def is_large(x: Any) -> bool:
    """Tell whether an array is one that these functions are for."""
    return type(x) is np.ndarray and x.size >= LARGE and x.dtype is F32


def _quotient_block(x: np.ndarray, divisor: Any, out: np.ndarray, rounded: Any, rest: bool) -> None:
    # In float64 the product of a float32 and a whole number below 2^29 is exact, and so is the difference.
    wide = x.astype(np.float64)
    quotient = wide / divisor
    rounded(quotient, out=quotient)
    if rest:
        quotient *= divisor
        quotient = np.subtract(wide, quotient, out=wide)
    out[...] = quotient


def divided(x: Any, y: Any, rounded: Any, rest: bool) -> np.ndarray | None:
    """Compute q = rounded(x / y) of float32, or the rest x - y q, quicker than NumPy; None where it cannot, or not exactly."""
    if not is_large(x):
        return None
    number = type(y) in (int, float, np.float32)
    if not number and (not is_large(y) or y.shape != x.shape):
        return None
    smallest = abs(float(np.float32(y))) if number else np.abs(y).min()
    if not smallest or not max(x.max(), -x.min()) / smallest < 1 << 27:  # or NaN
        return None
    if number:
        divisor = float(np.float32(y))
        return in_blocks(lambda a, out: _quotient_block(a, divisor, out, rounded, rest), x)
    return in_blocks(lambda a, b, out: _quotient_block(a, b.astype(np.float64), out, rounded, rest), x, y)
