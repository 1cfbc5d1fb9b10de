"""The gamma function and its relatives."""

from __future__ import annotations

import math

from .._core import kernels
from .._core.primitive import elementwise, engine_state
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import from_scipy, scipy_function, wide

_gammaln = from_scipy("gammaln")


def _lgamma(xp, x):
    out = kernels.lgamma(x, scipy_function(xp, "gammaln")) if kernels.is_large(x) else _gammaln(xp, x)
    if out.size and out.ndim and out.reshape(-1)[out.argmin()] > -math.inf:
        return out
    return xp.where(out == -math.inf, math.inf, out).astype(out.dtype, copy=False)  # at -inf; torch follows C


lgamma = elementwise("lgamma", implementation=wide(_lgamma), dx=lambda xp, g, x: g * xp.digamma(x))

_psi = from_scipy("psi")
_scipy_zeta = from_scipy("zeta")


def _hurwitz_zeta(xp, s, x):
    quick = kernels.hurwitz_zeta(x, int(s))
    return _scipy_zeta(xp, x.dtype.type(s), x) if quick is None else quick


LARGE = 1024
# B[2k] / 2k of the asymptotic series
BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _digamma(xp, x):
    """Compute digamma: many numbers at once by the series at x + 10, which scipy does one by one, and slowly below 0."""
    if x.size < LARGE:
        return _psi(xp, x)
    left = x < 0
    reflected = left.any()
    y = xp.where(left, 1 - x, x) if reflected else x
    steps = 1 / y
    for k in range(1, 10):
        steps += 1 / (y + k)
    y = y + 10
    square = 1 / (y * y)
    series = square * BERNOULLI[-1]
    for coefficient in BERNOULLI[-2::-1]:
        series = (series + coefficient) * square
    out = xp.log(y) - 0.5 / y - series - steps
    if not reflected:
        return out
    part = x - xp.module.rint(x)  # the tangent repeats itself
    pole = xp.logical_and(left, xp.logical_not(xp.abs(part) > 0))
    return xp.where(pole, math.nan, xp.where(left, out - math.pi / xp.tan(math.pi * part), out))


digamma = elementwise(
    "digamma",
    implementation=wide(_digamma),
    dx=lambda xp, g, x: g * xp.polygamma(x, n=1),
)


def _trigamma(xp, x):
    # reflected from the left half
    if 0 < x.size < LARGE and x.reshape(-1)[x.argmin()] >= 0.5:  # which NaN is not
        return scipy_function(xp, "zeta")(x.dtype.type(2), x)
    if kernels.is_large(x) and x.min() >= 0.5:
        return _hurwitz_zeta(xp, 2, x)
    left = x < 0.5
    value = _hurwitz_zeta(xp, 2, xp.where(left, 1 - x, x))
    return xp.where(left, (math.pi / xp.sin(math.pi * x)) ** 2 - value, value).astype(x.dtype, copy=False)


def _polygamma(xp, x, *, n):
    if n == 1:
        return _trigamma(xp, x)
    if n == 0:
        return _digamma(xp, x)
    factor = (math.factorial(n) if n <= 170 else math.inf) * (1.0 if n % 2 else -1.0)  # more is no float64
    return factor * _hurwitz_zeta(xp, n + 1, x)


polygamma = elementwise(
    "polygamma",
    statics=("n",),
    implementation=wide(_polygamma),
    dx=lambda xp, g, x, n: g * xp.polygamma(x, n=n + 1),
)


def _mvlgamma(xp, x, *, p):
    return sum(xp.lgamma(x - 0.5 * j) for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)


def _mvlgamma_dx(xp, g, x, p):
    slope = xp.digamma(x)
    for j in range(1, p):
        slope = slope + xp.digamma(x - 0.5 * j)
    return g * slope


mvlgamma = elementwise("mvlgamma", statics=("p",), implementation=wide(_mvlgamma), dx=_mvlgamma_dx)


# ---- incomplete gamma functions, zeta: torch has no derivative by the first argument, nor have we ----
def _refuse(name):
    def rule(xp, g):
        if not engine_state.depth:
            operation = name.partition(":")[0]
            raise NotImplementedError(
                f"Trying to use forward AD with {operation} that does not support it because it has not been implemented yet."
            )
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


def _density(xp, x, y):
    return xp.exp((x - 1) * xp.log(y) - y - xp.lgamma(x))


igamma = elementwise(
    "igamma",
    implementation=from_scipy("gammainc"),
    dx=_refuse("igamma: input"),
    dy=lambda xp, g, x, y: g * _density(xp, x, y),
)
igammac = elementwise(
    "igammac",
    implementation=from_scipy("gammaincc"),
    dx=_refuse("igammac: input"),
    dy=lambda xp, g, x, y: -g * _density(xp, x, y),
)
zeta = elementwise(
    "zeta",
    torch="special_zeta",
    implementation=from_scipy("zeta"),
    dx=_refuse("zeta"),
    dy=lambda xp, g, x, y: g * (-x * xp.zeta(x + 1, y)),
)
zeta.shows_edges("SpecialZetaBackward1", 1)
zeta.shows_edges("SpecialZetaBackward2", 0)
