"""Measure how exact the functions of `retrograd/_native/math.py` are.

python tools/check_math.py                 every function: every 509th float32, and 2000 float64
python tools/check_math.py exp log         these alone
python tools/check_math.py --all exp       all 2**32 float32 (two to five minutes for a function; says how far it has come)
python tools/check_math.py --write         put the table into docs/benchmarks.md
python tools/check_math.py --speed exp     what an element takes

Prints the greatest distance, in units in the last place of the exact result, and where it is: in float32 from what NumPy and SciPy
compute in float64, in float64 from mpmath. A wrong infinity, NaN or sign of zero counts as infinitely far in float32.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

import retrograd
from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._native.math import FUNCTIONS, NARROW
from retrograd._native.program import formula

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 1 << 18
FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- written by tools/check_math.py -->\n", "<!-- end -->\n"


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
    "exact_gelu": lambda x: x * scipy.special.ndtr(x),
    "exact_gelu_slope": _gelu_slope,
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


def measure(name: str, step: int) -> tuple[float, float]:
    """Compare a function of one argument on every `step`th float32: how far off the worst is, and where."""
    run = kernel(name)

    def block(start: int) -> tuple[float, float]:
        bits = np.arange(start, min(start + BLOCK * step, 1 << 32), step, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        off = units_off(run(x), exact(name, x))
        worst = int(off.argmax())
        return float(off[worst]), float(x[worst])

    starts = range(0, 1 << 32, BLOCK * step)
    worst = (-1.0, math.nan)
    with ThreadPoolExecutor(2) as pool:
        for done, found in enumerate(pool.map(block, starts)):
            worst = max(worst, found, key=lambda one: one[0])
            if step == 1 and done % 512 == 0:
                print(f"{name}: {done / len(starts):.0%}, {worst[0]:.3f} units so far", file=sys.stderr, flush=True)
    return worst


def measure_doubles(name: str, count: int) -> tuple[float, float]:
    """Compare a function of one argument with mpmath on some float64: how far off the worst is, and where."""
    import mpmath

    function = in_mpmath(name)
    x = doubles(name, count)
    worst = (-1.0, math.nan)
    with mpmath.workprec(200):
        for at, found in zip(x.tolist(), kernel(name)(x).tolist(), strict=True):
            worst = max(worst, (_units_of(found, function(mpmath.mpf(at))), at), key=lambda one: one[0])
    return worst


def doubles(name: str, count: int) -> Array:
    """Draw float64 numbers where a function of one argument has values that are neither 0 nor infinite."""
    draw = np.random.default_rng(0)
    scales = 2.0 ** draw.integers(-300, 300, count // 7)
    parts = [draw.uniform(-2, 2, count * 4 // 7), draw.uniform(-40, 40, count * 2 // 7), draw.uniform(0, 1, count // 7)]
    x = np.concatenate([*parts[:2], parts[2] * scales])
    if not name.startswith(("log", "arc")) or name == "log_ndtr":
        x = x[np.abs(x) < 1000]
    if name == "exact_gelu_slope":
        x = x[np.abs(x + 0.75) > 0.5]  # beside its zero it is a difference
    return x


def _units_of(found: float, right: Any) -> float:
    """Return how far a float64 is from a number of mpmath, in units in the last place."""
    import mpmath

    rounded = float(right) if isinstance(right, mpmath.mpf) else math.nan
    if not math.isfinite(rounded):
        return 0.0 if found == rounded or (math.isnan(found) and math.isnan(rounded)) else math.inf
    if not math.isfinite(found):
        return math.inf
    return float(abs(mpmath.mpf(found) - right) / mpmath.mpf(math.ulp(rounded)))


def in_mpmath(name: str) -> Callable[[Any], Any]:
    """Return a function of one argument as mpmath has it."""
    import mpmath as mp

    half = mp.mpf(1) / 2
    named = {
        "i0": lambda x: mp.besseli(0, x),
        "i1": lambda x: mp.besseli(1, x),
        "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "ndtr": lambda x: half * mp.erfc(-x * mp.sqrt(half)),
        "exact_gelu": lambda x: x * mp.ncdf(x),
        "exact_gelu_slope": lambda x: mp.ncdf(x) + x * mp.npdf(x),
        "log_ndtr": lambda x: (
            mp.log1p(-half * mp.erfc(x * mp.sqrt(half))) if x > 0 else mp.log(half * mp.erfc(-x * mp.sqrt(half)))
        ),
        "erfinv": lambda x: mp.erfinv(x) if abs(x) <= 1 else None,
        "exp2": lambda x: mp.mpf(2) ** x,
        "log2": lambda x: mp.log(x, 2),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    }
    return named.get(name) or getattr(mp, name.replace("arc", "a"))  # type: ignore[no-any-return]


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


def table(names: list[str], step: int, count: int) -> Iterator[str]:
    """Write one row after another: the worst of each function in float32, and in float64 where mpmath is installed."""
    yield "| function | float32: units in the last place | worst at | float64 | worst at |"
    yield "|---|---|---|---|---|"
    for name in names:
        single, at = measure(name, step)
        row = f"| `{name}` | {single:.2f} | {np.float32(at)!s} |"
        if name in NARROW:  # SciPy computes them
            yield f"{row} | |"
        elif find_spec("mpmath") is not None:
            double, where = measure_doubles(name, count)
            yield f"{row} {double:.2f} | {where:.6g} |"
        else:
            yield f"{row} not measured | |"


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="functions; all that take one argument if none is given")
    parser.add_argument("--all", action="store_true", help="take every float32")
    parser.add_argument("--count", type=int, default=2000, help="how many float64")
    parser.add_argument("--speed", action="store_true", help="time them instead")
    parser.add_argument("--write", action="store_true", help=f"put the table into {FIGURES.name}")
    given = parser.parse_args()
    names = given.names or [name for name in FUNCTIONS if name not in ("arctan2", "power")]
    if given.speed:
        for name in names:
            print(f"{name:16} {speed(name)}", flush=True)
        return
    rows = []
    for row in table(names, 1 if given.all else 509, given.count):
        rows.append(row)
        print(row, flush=True)
    if given.write:
        head, _, rest = FIGURES.read_text().partition(BEGIN)
        FIGURES.write_text(head + BEGIN + "\n".join(rows) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
