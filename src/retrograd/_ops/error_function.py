"""The error function's relatives, the normal distribution and entropy."""

from __future__ import annotations

import math

from .._core import kernels
from .._core.primitive import elementwise
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import from_scipy, scipy_function, wide

ROOT_PI = math.sqrt(math.pi)


def _quick_if_large(name, kernel):
    """Return scipy's function, and our own for large float32 arrays."""
    return wide(lambda xp, x: kernel(x) if kernels.is_large(x) else scipy_function(xp, name)(x))


def _quick_with_rest(name, kernel):
    """Return our own function for large float32 arrays, which leaves what it does not know to scipy's, and scipy's."""

    def compute(xp, x):
        exactly = scipy_function(xp, name)
        return kernel(x, exactly) if kernels.is_large(x) else exactly(x)

    return compute


_quick_erfinv = _quick_with_rest("erfinv", kernels.erfinv)

erfc = elementwise(
    "erfc",
    implementation=_quick_if_large("erfc", kernels.erfc),
    dx=lambda xp, g, x: (-2 / ROOT_PI) * xp.exp(-(x * x)) * g,
)
erfcx = elementwise(
    "erfcx",
    torch="special_erfcx",
    implementation=wide(_quick_with_rest("erfcx", kernels.erfcx)),
    dx=lambda xp, g, x, out: (2 * x * out - 2 / ROOT_PI) * g,
)


def _erfinv_dx(xp, g, x):
    inverse = xp.erfinv(x)
    return (ROOT_PI / 2) * xp.exp(inverse * inverse) * g


def _erfinv(xp, x):
    out = _quick_erfinv(xp, x)
    return out if out.all() else xp.where(x == 0, x, out)  # zero keeps its sign


erfinv = elementwise("erfinv", implementation=wide(_erfinv), dx=_erfinv_dx)
ndtr = elementwise(
    "ndtr",
    torch="special_ndtr",
    implementation=_quick_if_large("ndtr", kernels.ndtr),
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
    implementation=wide(_quick_with_rest("entr", kernels.entr)),
    dx=lambda xp, g, x: g * (-xp.log(x) - 1),
)
