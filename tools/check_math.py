"""Measure how exact the functions of `retrograd/_native/math.py` are.

python tools/check_math.py                 every function, every 509th float32
python tools/check_math.py exp log         these alone
python tools/check_math.py --all exp       all 2**32 of them (two to five minutes for a function)

Prints the greatest distance from what NumPy and SciPy compute in float64, in units in the last place of the exact result, where it
is, and what an element takes. A wrong infinity, NaN or sign of zero counts as infinitely far.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.special

import retrograd
from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._native.math import FUNCTIONS
from retrograd._native.program import formula

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 1 << 18


def kernel(name: str) -> Callable[..., Array]:
    """Return a function of `math` over arrays, compiled."""
    compiled = formula(lambda xp, *arrays: xp.combine(FUNCTIONS[name], *arrays))
    return lambda *arrays: compiled.large(numpy_namespace, arrays, {})  # type: ignore[no-any-return]


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def _erfinv(x: Array) -> Array:
    return np.where(x == 0, x, scipy.special.erfinv(x))  # zero keeps its sign


def _lgamma(x: Array) -> Array:
    return np.where(np.isinf(x), np.inf, scipy.special.gammaln(x))  # at both ends


def _gelu_slope(x: Array) -> Array:
    slope = scipy.special.ndtr(x) + x * np.exp(x * x / -2) / np.sqrt(2 * np.pi)
    return np.where(np.abs(slope) < 2.0**-150, 0.0, slope)  # torch's zero is positive


# in float64, where neither NumPy nor SciPy has it under that name, or does not do as torch does
EXACT: dict[str, Callable[..., Array]] = {
    "digamma": scipy.special.psi,
    "erfinv": _erfinv,
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "gelu_slope": _gelu_slope,
    "i0": scipy.special.i0,
    "lgamma": _lgamma,
    "sigmoid": _sigmoid,
}


def exact(name: str, *arrays: Array) -> Array:
    """Compute in float64 what float32 is to come close to."""
    function = EXACT.get(name) or getattr(np if hasattr(np, name) else scipy.special, name)
    with np.errstate(all="ignore"):
        return function(*[a.astype(np.float64) for a in arrays])  # type: ignore[no-any-return]


def units_off(found: Array, right: Array) -> Array:
    """Return how far float32 results are from float64 ones, in units in the last place of float32."""
    with np.errstate(all="ignore"):
        exponent = (right.view(np.int64) >> 52) & 0x7FF
        smallest = 1023 - 126  # denormals have the unit of the least normal number
        unit = (np.maximum(exponent, smallest) - 23) << 52
        off = np.abs(found - right) / unit.view(np.float64)
        rounded = right.astype(np.float32)
    odd = ~(off <= 0.5) | (found == 0)
    if odd.any():
        got, want = found[odd], rounded[odd]
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
        lost = ~np.isfinite(got) | ~np.isfinite(want) | (got == 0) & (want == 0)
        off[odd] = np.where(same & lost, 0, np.where(lost, np.inf, off[odd]))
    return off


def measure(name: str, step: int) -> str:
    """Compare a function of one argument on every `step`th float32 and describe the worst."""
    run = kernel(name)

    def block(start: int) -> tuple[float, np.float32]:
        bits = np.arange(start, min(start + BLOCK * step, 1 << 32), step, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        off = units_off(run(x), exact(name, x))
        worst = int(off.argmax())
        return float(off[worst]), x[worst]

    with ThreadPoolExecutor(2) as pool:
        worst, where = max(pool.map(block, range(0, 1 << 32, BLOCK * step)), key=lambda found: found[0])
    return f"{name:10} {worst:.3f} units at {where!r}"


def speed(name: str) -> str:
    """Time a function in both formats, on one thread, in memory that stays in the cache."""
    found = []
    retrograd.set_num_threads(1)
    run = kernel(name)
    for dtype in (np.float32, np.float64):
        x = np.linspace(0.01, 0.99, 1 << 16).astype(dtype)
        best = min(_timed(run, x) for _ in range(200))
        found.append(f"{best / x.size * 1e9:.2f} ns in {np.dtype(dtype).name}")
    return ", ".join(found)


def _timed(run: Callable[..., Array], x: Array) -> float:
    begin = time.perf_counter()
    run(x)
    return time.perf_counter() - begin


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="functions; all that take one argument if none is given")
    parser.add_argument("--all", action="store_true", help="take every float32")
    given = parser.parse_args()
    names = given.names or [name for name in FUNCTIONS if name not in ("arctan2", "power")]
    for name in names:
        print(measure(name, 1 if given.all else 509), speed(name), sep="; ", flush=True)


if __name__ == "__main__":
    main()
