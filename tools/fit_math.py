"""Fit the polynomials of `retrograd/_native/math.py` and write them to `retrograd/_native/coefficients.py`.

python tools/fit_math.py              fit all of them (a minute or two; needs mpmath)
python tools/fit_math.py exp sin      fit these again and keep the others

Each is the best approximation in the weighted maximum norm by polynomials with a given number of terms, found with Remez's exchange
algorithm in 50 digits. Coefficients are then rounded to the format one after the other, the lowest power first, and those that
are left are fitted again, so that what rounding costs at the low powers is made up for by the high ones; or in the best of all ways.
The weight turns the error of the polynomial into the relative error of the function that it is a part of.
"""

from __future__ import annotations

import itertools
import math
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 50
TARGET = Path(__file__).parents[1] / "src" / "retrograd" / "_native" / "coefficients.py"
TINY = mp.mpf(10) ** -18
Number = Any  # mpmath's, which has no types
Function = Callable[[Number], Number]


@dataclass(frozen=True)
class Fit:
    """A function, the ends of its interval, the weight of an error, and how many terms it takes in float32 and float64."""

    function: Function
    low: float | str | dict[str, float]
    high: float | str | dict[str, float]
    weight: Function
    terms: dict[str, int]
    wide: bool = False  # float32's polynomial is computed in float64


def root(function: Function) -> Function:
    """Write an even function of x as a function of z = x * x."""
    return lambda z: function(mp.sqrt(z))


def _scaled_erfc(t: Number) -> Number:
    """(1 + 2 * x) * exp(x * x) * erfc(x) for x = 4 * (1 + t) / (1 - t)."""
    if 1 - t < TINY:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x) * (1 + 2 * x)
    terms = [mp.fac2(2 * k - 1) / (-2 * x * x) ** k if k else mp.mpf(1) for k in range(12)]
    return (2 + 1 / x) * sum(terms) / mp.sqrt(mp.pi)


def _erfinv(w: Number) -> Number:
    """erfinv(x) / x for w = -log(1 - x * x)."""
    with mp.workdps(140):
        x = mp.sqrt(-mp.expm1(-w))
        return mp.erfinv(x) / x


LOG_2_ROUNDED = mp.mpf(0.6931471824645996)  # to float32


def _by_density(function: Function, t: Number, middle: float) -> Number:
    """Return a function of x at t = (x - middle) / (x + middle), by exp(-x * x / 2) as `_exp_of_half_square` computes it."""
    x = middle * (1 + t) / (1 - t)
    left = x * x / 2 * (LOG_2_ROUNDED / mp.log(2) - 1)
    return function(x) * mp.exp(x * x / 2 - left)


SLOPE_MIDDLE = 2.1380293369293213
SLOPE_MIDDLE_OF_HALF = 2.375
FLOAT16_END = 6.2  # beyond -x gelu and its derivative are 0 in float16


def _slope_by_zero(x: Number) -> Number:
    zero = mp.mpf("0.7517915246935644574579049467795240396645")
    return (mp.ncdf(-x) - x * mp.npdf(x)) / (zero - x)


def _lgamma_by_zeros(x: Number) -> Number:
    x = x + TINY  # beside the zeros, not at them
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def _bessel(order: int) -> Function:
    """Return the modified Bessel function of 1 / u, without what it grows by."""
    return lambda u: mp.besseli(order, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u) if u > TINY else 1 / mp.sqrt(2 * mp.pi)


HALF_LOG_2 = "0.3471"  # and what rounding adds to it
EIGHTH_TURN = "0.6193"  # the square of pi / 4, likewise
FITS: dict[str, Fit] = {
    # exp(r) = 1 + r + r**2 * exp(r)
    "exp": Fit(
        lambda r: (mp.expm1(r) - r) / r**2,
        "-" + HALF_LOG_2,
        HALF_LOG_2,
        lambda r: r**2 / mp.exp(r),
        {"f32": 5, "f64": 10},
    ),
    # expm1(r) = r + r**2 * expm1(r), of which the relative error counts near 0, too
    "expm1": Fit(
        lambda r: (mp.expm1(r) - r) / r**2,
        "-" + HALF_LOG_2,
        HALF_LOG_2,
        lambda r: r**2 / abs(mp.expm1(r)),
        {"f32": 6, "f64": 11},
    ),
    # 2**r = 1 + r * exp2(r)
    "exp2": Fit(lambda r: (2**r - 1) / r, -0.501, 0.501, lambda r: abs(r) / 2**r, {"f32": 7, "f64": 12}),
    # log(1 + f) = f - f**2 / 2 + f**3 * log(f) for 2/3 < 1 + f < 4/3
    "log": Fit(
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
        "-0.33334",
        "0.33334",
        lambda f: f**3 / mp.log1p(f),
        {"f32": 9},
    ),
    # log((1 + s) / (1 - s)) = 2 * s + s * z * log_ratio(z) for z = s * s; s = f / (2 + f) reaches from -0.2 to 1 / 7
    "log_ratio": Fit(
        root(lambda s: (2 * mp.atanh(s) / s - 2) / s**2),
        0,
        "0.0401",
        root(lambda s: s**3 / mp.atanh(s)),
        {"f32": 5, "f64": 8},
        wide=True,
    ),
    # atanh(s) = s + s * (z / 3 + z**2 * log_fifth(z)), for logarithms to more than the precision of float64
    "log_fifth": Fit(
        root(lambda s: (mp.atanh(s) / s - 1 - s**2 / 3) / s**4),
        0,
        "0.0401",
        root(lambda s: s**5 / mp.atanh(s)),
        {"f64": 8},
    ),
    # erf(x) = x + x * erf(x * x) below 1
    "erf": Fit(root(lambda x: mp.erf(x) / x - 1), 0, 1, root(lambda x: x / mp.erf(x)), {"f32": 7, "f64": 12}),
    # 1 - erf(x) = exp(-erf_tail(x)) from 1 to where it is less than half a unit of 1
    "erf_tail": Fit(
        lambda x: -mp.log(mp.erfc(x)),
        1,
        {"f32": 3.95, "f64": 6},
        lambda x: mp.erfc(x) / mp.erf(x),
        {"f32": 8, "f64": 18},
    ),
    # for gelu, with p(x) the normal distribution function at -x: x * p(x) = x / 2 - z * gelu_near(z) for z = x * x / 2, x up to 3/4
    "gelu_near": Fit(
        root(lambda s: mp.erf(s) / (s * mp.sqrt(2))),
        0,
        "0.2815",
        root(lambda s: s / mp.ncdf(-s * mp.sqrt(2)) / mp.sqrt(2)),
        {"f32": 5},
    ),
    # beyond, x * p(x) = exp(-x * x / 2) * gelu_far(t) for t = (x - m) / (x + m); at m it is nearly a float32
    "gelu_far": Fit(
        lambda t: _by_density(lambda x: x * mp.ncdf(-x), t, 1.78125),
        -0.4079,
        0.7838,
        lambda t: 1 / _by_density(lambda x: x * mp.ncdf(-x), t, 1.78125),
        {"f32": 10},
    ),
    # p(x) - x * density(x), the derivative at -x, is exp(-x * x / 2) * (z - x) * (1/2 + t * gelu_slope(t)) for its zero z, t likewise
    "gelu_slope": Fit(
        lambda t: (_by_density(_slope_by_zero, t, SLOPE_MIDDLE) - 0.5) / t,
        -1,
        0.7463,
        lambda t: abs(t) / _by_density(_slope_by_zero, t, SLOPE_MIDDLE),
        {"f32": 10},
    ),
    # for results in half precision: log2(p(x)), the derivative likewise, and 2**r; bfloat16 alone reaches far out, and has three bits less
    "gelu_half": Fit(
        lambda x: mp.log(mp.ncdf(-x), 2), 0, 14, lambda x: mp.mpf(1 if x < FLOAT16_END else 0.125), {"f32": 10}
    ),
    "gelu_slope_half": Fit(
        lambda t: _by_density(_slope_by_zero, t, SLOPE_MIDDLE_OF_HALF),
        -1,
        "0.722",
        lambda t: 1 / _by_density(_slope_by_zero, t, SLOPE_MIDDLE_OF_HALF),
        {"f32": 5},
    ),
    "exp2_half": Fit(lambda r: mp.mpf(2) ** r, -0.501, 0.501, lambda r: mp.mpf(2) ** -r, {"f32": 5}),
    # sin(r) = r + r * z * sin(z), cos(r) = 1 - z / 2 + z * z * cos(z) for z = r * r, |r| up to pi / 4
    "sin": Fit(
        root(lambda r: (mp.sin(r) / r - 1) / r**2),
        0,
        EIGHTH_TURN,
        root(lambda r: r**3 / mp.sin(r)),
        {"f32": 4, "f64": 6},
        wide=True,
    ),
    "cos": Fit(
        root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4),
        0,
        EIGHTH_TURN,
        root(lambda r: r**4 / mp.cos(r)),
        {"f32": 3, "f64": 6},
        wide=True,
    ),
    # sinh(x) = x + x * z * sinh(z) for z = x * x, x up to 1
    "sinh": Fit(
        root(lambda x: (mp.sinh(x) / x - 1) / x**2), 0, 1, root(lambda x: x**3 / mp.sinh(x)), {"f32": 4, "f64": 8}
    ),
    # asin(s) = s + s * z * asin(z) for z = s * s, s up to 1 / 2
    "asin": Fit(
        root(lambda s: (mp.asin(s) / s - 1) / s**2),
        0,
        "0.2501",
        root(lambda s: s**3 / mp.asin(s)),
        {"f32": 6, "f64": 13},
    ),
    # atan(t) = t + t * z * atan(z) for z = t * t, t up to 1
    "atan": Fit(
        root(lambda t: (mp.atan(t) / t - 1) / t**2), 0, 1, root(lambda t: t**3 / mp.atan(t)), {"f32": 9, "f64": 20}
    ),
    # erfc(x) = exp(-x * x) * (1 + erfc(t)) / (1 + 2 * x) for t = (x - 4) / (x + 4), x from 0 or where erf is 1/2
    "erfc": Fit(
        lambda t: _scaled_erfc(t) - 1,
        {"f32": -1, "f64": -0.79},
        1,
        lambda t: 1 / _scaled_erfc(t),
        {"f32": 15, "f64": 30},
        wide=True,
    ),
    # erfinv(x) = x * erfinv(w) for w = -log(1 - x * x), and x * erfinv_far(sqrt(w) - 4) from 5 to where x is 2**-53 from 1
    "erfinv": Fit(_erfinv, 0, 5, lambda w: 1 / _erfinv(w), {"f32": 12}, wide=True),
    "erfinv_far": Fit(
        lambda s: _erfinv((s + 4) ** 2), -1.77, 2.1, lambda s: 1 / _erfinv((s + 4) ** 2), {"f32": 13}, wide=True
    ),
    # log(gamma(x)) = (x - 1) * (x - 2) * lgamma(x - 1.75) from 1/2 to 3
    "lgamma": Fit(
        lambda t: _lgamma_by_zeros(t + 1.75),
        -1.25,
        1.25,
        lambda t: 1 / _lgamma_by_zeros(t + 1.75),
        {"f32": 22},
        wide=True,
    ),
    # I0(x) = i0(z), I1(x) = x / 2 * i1(z) for z = x * x / 4, x up to 8
    "i0": Fit(
        lambda z: mp.besseli(0, 2 * mp.sqrt(z)),
        0,
        16,
        lambda z: 1 / mp.besseli(0, 2 * mp.sqrt(z)),
        {"f32": 12, "f64": 19},
    ),
    "i1": Fit(
        lambda z: mp.besseli(1, 2 * mp.sqrt(z)) / mp.sqrt(z),
        0,
        16,
        lambda z: mp.sqrt(z) / mp.besseli(1, 2 * mp.sqrt(z)),
        {"f32": 11, "f64": 20},
        wide=True,
    ),
    # I0(x) = exp(x) / sqrt(x) * i0_far(1 / x) from 8 on, and likewise I1
    "i0_far": Fit(_bessel(0), 0, 0.125, lambda u: 1 / _bessel(0)(u), {"f32": 6, "f64": 24}, wide=True),
    "i1_far": Fit(_bessel(1), 0, 0.125, lambda u: 1 / _bessel(1)(u), {"f32": 6, "f64": 24}, wide=True),
}


# ---- Remez ----
class Samples:
    """Values of a function and of its weight on Chebyshev's points; at 0, where quotients have a gap, the point beside it."""

    def __init__(self, fit: Fit, type: str, count: int) -> None:
        low, high = (mp.mpf(end[type] if isinstance(end, dict) else end) for end in (fit.low, fit.high))
        raw = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
        self.x = [x if abs(x) > TINY else TINY for x in raw]
        self.values = [fit.function(x) for x in self.x]
        self.weights = [fit.weight(x) for x in self.x]


def remez(samples: Samples, rest: list[Number], powers: range) -> tuple[list[Number], Number]:
    """Return the coefficients of the best polynomial for what is left of the values, and its greatest error."""
    x, weights, terms = samples.x, samples.weights, len(powers)
    at = [round((i + 0.5) / (terms + 1) * (len(x) - 1)) for i in range(terms + 1)]
    for _ in range(30):
        matrix, right = mp.matrix(terms + 1, terms + 1), mp.matrix(terms + 1, 1)
        for row, i in enumerate(at):
            for column, power in enumerate(powers):
                matrix[row, column] = x[i] ** power * weights[i]
            matrix[row, terms] = (-1) ** row
            right[row] = rest[i] * weights[i]
        solution = mp.lu_solve(matrix, right)
        found, level = [solution[k] for k in range(terms)], abs(solution[terms])
        errors = [
            (r - sum(c * t**p for c, p in zip(found, powers, strict=True))) * w
            for t, r, w in zip(x, rest, weights, strict=True)
        ]
        greatest = max(map(abs, errors))
        at = extremes(errors, terms + 1)
        if greatest < level * mp.mpf("1.001") or len(at) < terms + 1:
            break
    return found, greatest


def extremes(errors: list[Number], count: int) -> list[int]:
    """Return where the error is greatest between its changes of sign; of more than `count` the smallest are left out, in pairs."""
    runs: list[list[int]] = [[0]]
    for i in range(1, len(errors)):
        if (errors[i] > 0) == (errors[i - 1] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    at = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    while len(at) > count:
        least = min(range(len(at)), key=lambda k: abs(errors[at[k]]))
        if len(at) == count + 1 or least in (0, len(at) - 1):
            at.pop(0 if abs(errors[at[0]]) < abs(errors[at[-1]]) else -1)
        else:
            beside = min((least - 1, least + 1), key=lambda k: abs(errors[at[k]]))
            del at[min(least, beside) : max(least, beside) + 1]
    return at


def rounded(value: Number, type: str) -> float:
    """Round to a format."""
    return float(value) if type == "f64" else float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def fitted(fit: Fit, type: str) -> tuple[list[float], Number]:
    """Return rounded coefficients, the lowest power first, and the greatest weighted error that they leave."""
    samples = Samples(fit, type, 600)
    format, terms = "f64" if fit.wide else type, fit.terms[type]
    found = [_rounded_in_turn(samples, terms, format)]
    if format == "f32" and terms <= 12:
        found.append(_rounded_up_or_down(samples, terms))
    return min(found, key=lambda one: one[1])


def _rounded_in_turn(samples: Samples, terms: int, format: str) -> tuple[list[float], Number]:
    """Round the lowest coefficient and fit the others again, until none is left."""
    rest = list(samples.values)
    kept: list[float] = []
    one_by_one = terms if format == "f32" else 3  # what rounding of the others costs is far below a unit of the result
    while len(kept) < terms:
        found, _ = remez(samples, rest, range(len(kept), terms))
        for value in found[:1] if len(kept) < one_by_one else found:
            value = rounded(value, format)
            power = len(kept)
            rest = [r - value * x**power for r, x in zip(rest, samples.x, strict=True)]
            kept.append(value)
    return kept, max(abs(r * w) for r, w in zip(rest, samples.weights, strict=True))


def _rounded_up_or_down(samples: Samples, terms: int) -> tuple[list[float], Number]:
    """Try all ways of rounding coefficients to float32: around 0, higher powers cannot make up for what lower ones lost."""
    found, _ = remez(samples, samples.values, range(terms))
    nearest = np.array([float(value) for value in found], np.float32)
    other = np.nextafter(
        nearest, [np.float32(math.copysign(math.inf, v - float(n))) for v, n in zip(found, nearest, strict=True)]
    )
    off = np.array([[float(float(c) - v) for c in pair] for v, *pair in zip(found, nearest, other, strict=True)])
    x, weights = (np.array([float(v) for v in values]) for values in (samples.x, samples.weights))
    powers = x[:, None] ** np.arange(terms) * weights[:, None]
    left = [r - mp.polyval(found[::-1], t) for t, r in zip(samples.x, samples.values, strict=True)]
    errors = np.array([float(v) for v in left]) * weights
    ways = itertools.product((0, 1), repeat=terms)
    best = min((abs(errors - powers @ off[range(terms), way]).max(), way) for way in ways)
    chosen = zip(best[1], nearest, other, strict=True)
    return [float(up if way else near) for way, near, up in chosen], mp.mpf(best[0])


HEADER = '''"""Coefficients of the polynomials in `math`, the lowest power first. `tools/fit_math.py` fits and writes them.

The comment behind each says how large the relative error is that the polynomial alone leaves.
"""

from typing import Final

COEFFICIENTS: Final[dict[str, dict[str, tuple[float, ...]]]] = {
'''


def main() -> None:
    """Fit what is asked for, and write the file."""
    asked = sys.argv[1:] or list(FITS)
    known: dict[str, list[str]] = {}
    if TARGET.exists():
        blocks = TARGET.read_text().split("    # fit: ")[1:]
        known = {block.split("\n", 1)[0]: [block] for block in blocks}
    lines = [HEADER]
    for name, fit in FITS.items():
        if name not in asked and name in known:
            lines.append("    # fit: " + known[name][0].removesuffix("}\n"))
            continue
        lines.append(f"    # fit: {name}\n    {name!r}: {{\n")
        for type in fit.terms:
            values, error = fitted(fit, type)
            print(name, type, f"2**{float(mp.log(error, 2)):.1f}", flush=True)
            lines.append(f"        # 2**{float(mp.log(error, 2)):.1f}\n        {type!r}: (\n")
            lines += [f"            {value!r},\n" for value in values]
            lines.append("        ),\n")
        lines.append("    },\n")
    lines.append("}\n")
    TARGET.write_text("".join(lines).replace("'", '"'))


if __name__ == "__main__":
    main()
