"""Special functions: gamma, Bessel and error functions with their relatives, and orthogonal polynomials."""

from __future__ import annotations

import math

from .._core.numpy_namespace import numpy_namespace
from .._core.passes import integer_power
from .._core.primitive import elementwise, engine_state
from .._native.program import NATIVE, formula
from . import elementwise as _  # noqa: F401 - the rules read its names
from .implementations import from_scipy, named_kernel, scipy_function, wide, with_kernel

_gammaln = from_scipy("gammaln")
TINY = 1e-300  # below, scipy's lgamma is infinite before 1/x is


def _lgamma(xp, x):
    out = _gammaln(xp, x)
    if not out.ndim or not xp.isfinite(out).all():
        out = xp.where(out == -math.inf, math.inf, out)  # at -inf; torch follows C
        out = xp.where((out == math.inf) & (xp.abs(x) < TINY), -xp.log(xp.abs(x)), out).astype(x.dtype, copy=False)
    return out


lgamma = elementwise(
    "lgamma",
    implementation=with_kernel(_lgamma, lambda xp, x: xp.lgamma(x)),
    dx=lambda xp, g, x: g * xp.digamma(x),
)
digamma = elementwise(
    "digamma", implementation=named_kernel("digamma", "psi"), dx=lambda xp, g, x: g * xp.polygamma(x, n=1)
)

_scipy_zeta = from_scipy("zeta")


LARGE = 1024
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


@formula
def _zeta_of_positive(xp, x, *, s):
    """Sum (x + k)^-s over k: ten terms, then the formula of Euler and Maclaurin."""
    y = 1 / (x + 10)
    rising = [math.prod(range(s, s + 2 * k - 1)) / math.factorial(2 * k) for k in range(1, 6)]
    series = 0.0
    for b, r in zip(reversed(_BERNOULLI), reversed(rising), strict=True):
        series = series * (y * y) + b * r
    rest = ((series * y + 0.5) * y + 1 / (s - 1)) * integer_power(y, s - 1)
    return sum([integer_power(1 / (x + k), s) for k in range(10)]) + rest


def _hurwitz_zeta(xp, s, x):
    if xp is numpy_namespace and x.size >= NATIVE and x.dtype.char == "f" and 2 <= s <= 4 and x.min() > 0:  # no NaN
        return _zeta_of_positive(xp, x, s=int(s))
    return _scipy_zeta(xp, x.dtype.type(s), x)


def _trigamma(xp, x):
    # reflected from the left half
    if 0 < x.size < LARGE and x.reshape(-1)[x.argmin()] >= 0.5:  # which NaN is not
        return scipy_function(xp, "zeta")(x.dtype.type(2), x)
    if x.size >= LARGE and x.min() >= 0.5:
        return _hurwitz_zeta(xp, 2, x)
    left = x < 0.5
    value = _hurwitz_zeta(xp, 2, xp.where(left, 1 - x, x))
    return xp.where(left, (math.pi / xp.sin(math.pi * x)) ** 2 - value, value).astype(x.dtype, copy=False)


def _polygamma(xp, x, *, n):
    if n == 1:
        return _trigamma(xp, x)
    if n == 0:
        return xp.digamma(x)
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


# ---- Bessel functions and the Airy function: torch has no derivative of most, here all have one ----
def _over(xp, value, x, at_zero):
    """Divide by x; next to 0, where values lose their digits, the quotient is its limit."""
    zero = xp.less(xp.abs(x), 1e-30)
    quotient = value / xp.where(zero, xp.ones_like(x), x)
    return xp.where(zero, xp.ones_like(quotient) * at_zero, quotient)


def _bessel(name, scipy_name, dx, node=None):
    compute = (named_kernel if scipy_name in ("i0", "i0e", "i1", "i1e") else from_scipy)(scipy_name)
    return elementwise(name, torch=node or f"special_{name}", implementation=compute, dx=dx)


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


# ---- the error function's relatives, the normal distribution and entropy ----
ROOT_PI = math.sqrt(math.pi)


erfc = elementwise(
    "erfc",
    implementation=named_kernel("erfc"),
    dx=lambda xp, g, x: (-2 / ROOT_PI) * xp.exp(-(x * x)) * g,
)
erfcx = elementwise(
    "erfcx",
    torch="special_erfcx",
    implementation=named_kernel("erfcx"),
    dx=lambda xp, g, x, out: (2 * x * out - 2 / ROOT_PI) * g,
)
_scipy_erfinv = from_scipy("erfinv")


def _erfinv_dx(xp, g, x):
    inverse = xp.erfinv(x)
    return (ROOT_PI / 2) * xp.exp(inverse * inverse) * g


def _erfinv(xp, x):
    out = _scipy_erfinv(xp, x)
    return out if out.all() else xp.where(x == 0, x, out)  # zero keeps its sign


erfinv = elementwise("erfinv", implementation=with_kernel(_erfinv, lambda xp, x: xp.erfinv(x)), dx=_erfinv_dx)
ndtri = elementwise(
    "ndtri",
    torch="special_ndtri",
    implementation=from_scipy("ndtri"),
    dx=lambda xp, g, out: math.sqrt(2 * math.pi) * xp.exp(0.5 * (out * out)) * g,
)
log_ndtr = elementwise(
    "log_ndtr",
    torch="special_log_ndtr",
    implementation=named_kernel("log_ndtr"),
    dx=lambda xp, g, x: math.sqrt(2 / math.pi) * g / xp.erfcx(-math.sqrt(0.5) * x),
)

entr = elementwise(
    "entr",
    torch="special_entr",
    implementation=with_kernel(
        from_scipy("entr"),
        lambda xp, x: xp.where(x < 0, -math.inf, xp.where(x == 0, 0.0, -x * xp.log(x))),
    ),
    dx=lambda xp, g, x: g * (-xp.log(x) - 1),
)


# ---- orthogonal polynomials, by their recurrences: torch has no derivatives of them, here they have all orders ----
# Every family is P[0] = 1, P[k + 1] = (a x + b) P[k] - c P[k - 1] with numbers a, b, c that depend on k. Differentiating the
# recurrence gives one for the derivatives: D[k + 1] = (a x + b) D[k] + order a D'[k] - c D[k - 1], where D' is of one order
# less. It is exact everywhere, where the closed forms of the derivatives divide by zero at the ends of the interval.
# Beyond these degrees a Hermite polynomial of ordinary numbers overflows; torch gives NaN.
HERMITE_LIMITS = {4: 128, 8: 512}
FARTHEST = 1 << 22  # the highest degree computed step by step
LONG = 64  # beyond this degree Chebyshev polynomials inside the interval are computed by cosines


def _chebyshev(first):
    return lambda k: (first[0], first[1], 0) if k == 0 else (2, 0, 1)


RECURRENCES = {
    "chebyshev_polynomial_t": _chebyshev((1, 0)),
    "chebyshev_polynomial_u": _chebyshev((2, 0)),
    "chebyshev_polynomial_v": _chebyshev((2, -1)),
    "chebyshev_polynomial_w": _chebyshev((2, 1)),
    "hermite_polynomial_h": lambda k: (2, 0, 2 * k),
    "hermite_polynomial_he": lambda k: (1, 0, k),
    "laguerre_polynomial_l": lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)),
    "legendre_polynomial_p": lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1)),
}
# With x = cos(angle), inside (-1, 1); torch computes them so as well.
COSINES = {
    "chebyshev_polynomial_t": lambda xp, n, a: xp.cos(n * a),
    "chebyshev_polynomial_u": lambda xp, n, a: xp.sin((n + 1) * a) / xp.sin(a),
    "chebyshev_polynomial_v": lambda xp, n, a: xp.cos((n + 0.5) * a) / xp.cos(0.5 * a),
    "chebyshev_polynomial_w": lambda xp, n, a: xp.sin((n + 0.5) * a) / xp.sin(0.5 * a),
}


# Chebyshev polynomials of degree n at 1 and, but for the sign of odd degrees, at -1: a * n + b.
AT_ENDS = {
    "chebyshev_polynomial_t": ((0, 1), (0, 1)),
    "chebyshev_polynomial_u": ((1, 1), (1, 1)),
    "chebyshev_polynomial_v": ((0, 1), (2, 1)),
    "chebyshev_polynomial_w": ((2, 1), (0, 1)),
}


def _at_end(xp, right, left, x, degrees):
    values = [a * degrees.astype("float64") + b for a, b in (right, left)]
    return xp.where(x > 0, values[0], xp.where(degrees % 2 == 0, values[1], -values[1]))


def _by_degree(xp, x, most, order, coefficients):
    """Yield the polynomials of degrees 0 to `most`."""
    zero = xp.zeros_like(x)
    before, now = [zero] * (order + 1), [xp.ones_like(x), *[zero] * order]
    yield now[order]
    for k in range(most):
        a, b, c = coefficients(k)
        factor = a * x + b if b else a * x
        after = []
        for d in range(order + 1):
            value = factor * now[d]
            if d:
                value = value + d * a * now[d - 1]
            after.append(value - (before[d] if c == 1 else c * before[d]) if c else value)
        before, now = now, after
        yield now[order]
        if k % LONG == LONG - 1 and not xp.isfinite(now[order]).any():
            return  # and none ever will be


def _one_degree(xp, x, degree, order, coefficients):
    if degree < 0:
        return xp.zeros_like(x)
    for value in _by_degree(xp, x, degree, order, coefficients):
        last = value
    return last


def _degree_of_each(xp, x, degrees, most, order, coefficients):
    out = xp.zeros_like(x)
    if most >= 0:
        for degree, value in enumerate(_by_degree(xp, x, most, order, coefficients)):
            if degree == LONG**2 and most > FARTHEST:  # it has not overflowed by now
                raise RuntimeError(
                    f"a polynomial of degree {most} takes as many steps; the highest degree is {FARTHEST}"
                )
            out = xp.where(degrees == degree, value, out)
        out = xp.where(degrees > degree, math.nan, out)
    return out


def _polynomial(name, shifted):
    coefficients, by_cosine = RECURRENCES[name], COSINES.get(name)
    limits = HERMITE_LIMITS if name.startswith("hermite") else {}

    def implementation(xp, x, y, *, order=0):
        dtype = x.dtype if hasattr(x, "dtype") else y.dtype
        if shifted:
            x = 2 * x - 1
        if isinstance(y, (int, float)) and y <= LONG and hasattr(x, "dtype"):
            out = _one_degree(xp, x, int(y), order, coefficients)
            return 2**order * out if shifted and order else out
        x, y = xp.module.broadcast_arrays(*[xp.module.asarray(v, dtype) for v in (x, y)])
        degrees = xp.where(xp.isfinite(y), y, -1).astype("int64")  # torch drops what is behind the point
        limit = limits.get(dtype.itemsize, math.inf)
        wanted = xp.where(degrees > limit, -1, degrees)
        cosine = None
        if by_cosine is not None and order == 0:
            cosine = xp.logical_and(degrees > LONG, xp.abs(x) < 1)
            at_end = xp.logical_and(degrees > LONG, xp.abs(x) == 1)
            wanted = xp.where(xp.logical_or(cosine, at_end), -1, wanted)
        most = int(wanted.max()) if wanted.size else -1
        out = _degree_of_each(xp, x, wanted, most, order, coefficients)
        if cosine is not None and cosine.any():
            out = xp.where(cosine, by_cosine(xp, degrees, xp.arccos(xp.where(cosine, x, 0))), out)
        if cosine is not None and at_end.any():
            out = xp.where(at_end, _at_end(xp, *AT_ENDS[name], x, degrees), out)
        if limits:
            out = xp.where(degrees > limit, math.nan, out)
        return (2**order * out if shifted else out).astype(dtype, copy=False)

    return implementation


def _declare(name, shifted):
    own = f"shifted_{name}" if shifted else name
    return elementwise(
        own,
        torch=f"special_{own}",
        inputs=("x", "y"),
        statics=("order",),
        implementation=_polynomial(name, shifted),
        dx=lambda xp, g, x, y, order: g * getattr(xp, own)(x, y, order=order + 1),
    )


POLYNOMIALS = {name: _declare(name, False) for name in RECURRENCES}
POLYNOMIALS |= {f"shifted_{name}": _declare(name, True) for name in COSINES}
