"""Bessel functions and the Airy function. torch has no derivative of most; here all have one."""

from __future__ import annotations

from .._core.primitive import elementwise
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import from_scipy, scipy_function, wide


def _over(xp, value, x, at_zero):
    """Divide by x; at 0 the quotient has a limit."""
    zero = xp.equal(x, 0)
    quotient = value / xp.where(zero, xp.ones_like(x), x)
    return xp.where(zero, xp.ones_like(quotient) * at_zero, quotient)


def _bessel(name, scipy_name, dx, node=None):
    return elementwise(name, torch=node or f"special_{name}", implementation=from_scipy(scipy_name), dx=dx)


# ---- of real order, torch's derivatives ----
i0 = _bessel("i0", "i0", lambda xp, g, x: g * xp.i1(x), "i0")
i0e = _bessel("i0e", "i0e", lambda xp, g, x, out: g * (xp.i1e(x) - xp.sgn(x) * out))
i1 = _bessel("i1", "i1", lambda xp, g, x, out: g * (xp.i0(x) - _over(xp, out, x, 0.5)))
i1e = _bessel("i1e", "i1e", lambda xp, g, x, out: g * (xp.i0e(x) - xp.sgn(x) * out - _over(xp, out, x, 0.5)))

# ---- where torch has none ----
modified_bessel_i0 = _bessel("modified_bessel_i0", "i0", lambda xp, g, x: g * xp.modified_bessel_i1(x))
modified_bessel_i1 = _bessel(
    "modified_bessel_i1", "i1", lambda xp, g, x, out: g * (xp.modified_bessel_i0(x) - _over(xp, out, x, 0.5))
)
modified_bessel_k0 = _bessel("modified_bessel_k0", "k0", lambda xp, g, x: -g * xp.modified_bessel_k1(x))
modified_bessel_k1 = _bessel(
    "modified_bessel_k1", "k1", lambda xp, g, x, out: -g * (xp.modified_bessel_k0(x) + out / x)
)
scaled_modified_bessel_k0 = _bessel(
    "scaled_modified_bessel_k0", "k0e", lambda xp, g, x, out: g * (out - xp.scaled_modified_bessel_k1(x))
)
scaled_modified_bessel_k1 = _bessel(
    "scaled_modified_bessel_k1", "k1e", lambda xp, g, x, out: g * (out - xp.scaled_modified_bessel_k0(x) - out / x)
)
bessel_j0 = _bessel("bessel_j0", "j0", lambda xp, g, x: -g * xp.bessel_j1(x))
bessel_j1 = _bessel("bessel_j1", "j1", lambda xp, g, x, out: g * (xp.bessel_j0(x) - _over(xp, out, x, 0.5)))
bessel_y0 = _bessel("bessel_y0", "y0", lambda xp, g, x: -g * xp.bessel_y1(x))
bessel_y1 = _bessel("bessel_y1", "y1", lambda xp, g, x, out: g * (xp.bessel_y0(x) - out / x))


def _spherical_j0(xp, x):
    out = xp.sin(x) / x
    if xp.isfinite(out).all():
        return out
    return xp.where(x == 0, 1, xp.where(xp.isinf(x), 0, out)).astype(x.dtype, copy=False)


def _spherical_j0_dx(xp, g, x, out):
    # near 0 the quotient loses its digits: there the series is exact
    near = xp.less(xp.abs(x), 1e-2)
    far = xp.where(near, xp.ones_like(x), x)
    series = x * (-1 / 3 + x * x * (1 / 30 - x * x / 840))
    return g * xp.where(near, series, (xp.cos(far) - out) / far)


spherical_bessel_j0 = elementwise(
    "spherical_bessel_j0", torch="special_spherical_bessel_j0", implementation=wide(_spherical_j0), dx=_spherical_j0_dx
)


def _airy(order):
    """Return the Airy function, or its derivative, of real numbers."""
    return lambda xp, x: scipy_function(xp, "airy")(x)[order]


airy_ai = elementwise(
    "airy_ai",
    torch="special_airy_ai",
    implementation=_airy(0),
    dx=lambda xp, g, x: g * xp.airy_ai_slope(x),
)
airy_ai_slope = elementwise(
    "airy_ai_slope",
    torch="special_airy_ai",
    implementation=_airy(1),
    dx=lambda xp, g, x: g * (x * xp.airy_ai(x)),  # Airy's equation
)
