"""What functions have in common: the numbers of float formats, fitted polynomials, and arithmetic with what rounding leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .coefficients import COEFFICIENTS
from .expression import F32, F64, I32, I64, Expr, bitcast, const, fma, select

INF: Final = float("inf")
NAN: Final = float("nan")


@dataclass(frozen=True)
class Format:
    """What the functions need to know about a float type."""

    type: str
    bits: str  # the integers of the same width
    mantissa: int  # how far the exponent is shifted
    bias: int  # of the exponent
    least_normal: float
    log2_e: tuple[float, float]  # numbers, each with what its rounding left
    log10_e: tuple[float, float]
    log10_2: tuple[float, float]
    log_2: tuple[float, float]
    pi: tuple[float, float]
    two_thirds: int  # as an integer
    exp_ends: tuple[float, float]  # beyond them exp is 0 and infinite
    exp2_ends: tuple[float, float]
    cosh_end: float  # beyond it cosh and sinh are infinite
    square_end: float  # beyond it 1 + x * x is x * x
    tanh_end: float  # from here on tanh is 1
    erf_end: float  # likewise

    def scale(self, exponent: Expr) -> Expr:
        """Return the power of two whose biased exponent is in the low bits of an integer."""
        return bitcast(exponent << self.mantissa, self.type)


FORMATS: Final = {
    F32: Format(
        type=F32,
        bits=I32,
        mantissa=23,
        bias=127,
        least_normal=2.0**-126,
        log2_e=(1.4426950216293335, 1.925963033500011e-08),
        log10_e=(0.4342944920063019, -1.0103049952192578e-08),
        log10_2=(0.3010300099849701, -1.432098883924482e-08),
        log_2=(0.6931471824645996, -1.9046542121259336e-09),
        pi=(3.1415927410125732, -8.742277657347586e-08),
        two_thirds=0x3F2AAAAB,
        exp_ends=(-104.0, 89.0),
        exp2_ends=(-151.0, 129.0),
        cosh_end=89.6,
        square_end=2.0**14,
        tanh_end=9.1,
        erf_end=3.95,
    ),
    F64: Format(
        type=F64,
        bits=I64,
        mantissa=52,
        bias=1023,
        least_normal=2.0**-1022,
        log2_e=(1.4426950408889634, 2.0355273740931033e-17),
        log10_e=(0.4342944819032518, 1.098319650216765e-17),
        log10_2=(0.3010299956639812, -2.8037281277851704e-18),
        log_2=(0.6931471805599453, 2.3190468138462996e-17),
        pi=(3.141592653589793, 1.2246467991473532e-16),
        two_thirds=0x3FE5555555555555,
        exp_ends=(-746.0, 710.0),
        exp2_ends=(-1076.0, 1025.0),
        cosh_end=710.6,
        square_end=2.0**28,
        tanh_end=19.1,
        erf_end=6.0,
    ),
}


def polynomial(name: str, x: Expr, precision: str = "") -> Expr:
    """Evaluate a fitted polynomial by Horner's rule; `precision` is that of the result if x is wider."""
    *lower, highest = COEFFICIENTS[name][precision or x.type]
    result = const(highest, x.type)
    for coefficient in reversed(lower):
        result = fma(result, x, coefficient)
    return result


def quick_polynomial(name: str, x: Expr) -> Expr:
    """Evaluate a fitted polynomial by pairs of powers, then pairs of pairs: fewer steps wait for each other, each rounds a little more."""
    values: list[Any] = list(COEFFICIENTS[name][x.type])
    while len(values) > 1:
        pairs = [fma(x, high, low) for low, high in zip(values[::2], values[1::2], strict=False)]
        values, x = [*pairs, *values[len(pairs) * 2 :]], x * x
    return values[0]  # type: ignore[no-any-return]


def at_most(x: Expr, high: float) -> Expr:
    """Return the smaller of the two, and NaN of NaN; one instruction, which `minimum` is not."""
    return select(x > high, high, x)


def at_least(x: Expr, low: float) -> Expr:
    """Return the greater of the two, and NaN of NaN."""
    return select(x < low, low, x)


def fast_sum(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """x + y for |x| >= |y|, and what its rounding left."""
    total = x + y
    return total, y - (total - x)
