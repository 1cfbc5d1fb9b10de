"""The error function's relatives, the normal distribution and entropy."""

from __future__ import annotations

import math

from .._core.primitive import elementwise
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import from_scipy, wide

ROOT_PI = math.sqrt(math.pi)

erfc = elementwise(
    "erfc",
    implementation=from_scipy("erfc"),
    dx=lambda xp, g, x: (-2 / ROOT_PI) * xp.exp(-(x * x)) * g,
)
erfcx = elementwise(
    "erfcx",
    torch="special_erfcx",
    implementation=from_scipy("erfcx"),
    dx=lambda xp, g, x, out: (2 * x * out - 2 / ROOT_PI) * g,
)


def _erfinv_dx(xp, g, x):
    inverse = xp.erfinv(x)
    return (ROOT_PI / 2) * xp.exp(inverse * inverse) * g


_scipy_erfinv = from_scipy("erfinv")


def _erfinv(xp, x):
    out = _scipy_erfinv(xp, x)
    return out if out.all() else xp.where(x == 0, x, out)  # zero keeps its sign


erfinv = elementwise("erfinv", implementation=wide(_erfinv), dx=_erfinv_dx)
ndtr = elementwise(
    "ndtr",
    torch="special_ndtr",
    implementation=from_scipy("ndtr"),
    dx=lambda xp, g, x: (1 / math.sqrt(2 * math.pi)) * xp.exp(-0.5 * (x * x)) * g,
)
ndtri = elementwise(
    "ndtri",
    torch="special_ndtri",
    implementation=from_scipy("ndtri"),
    dx=lambda xp, g, out: math.sqrt(2 * math.pi) * xp.exp(0.5 * (out * out)) * g,
)
log_ndtr = elementwise(
    "log_ndtr",
    torch="special_log_ndtr",
    implementation=from_scipy("log_ndtr"),
    dx=lambda xp, g, x: math.sqrt(2 / math.pi) * g / xp.erfcx(-math.sqrt(0.5) * x),
)
entr = elementwise(
    "entr",
    torch="special_entr",
    implementation=from_scipy("entr"),
    dx=lambda xp, g, x: g * (-xp.log(x) - 1),
)
