"""Orthogonal polynomials, by their recurrences. torch has no derivatives of them; here they have all orders.

Every family is P[0] = 1, P[k + 1] = (a x + b) P[k] - c P[k - 1] with numbers a, b, c that depend on k. Differentiating the
recurrence gives one for the derivatives: D[k + 1] = (a x + b) D[k] + order a D'[k] - c D[k - 1], where D' is of one order
less. It is exact everywhere, where the closed forms of the derivatives divide by zero at the ends of the interval.
"""

from __future__ import annotations

import math

from .._core.primitive import elementwise
from . import elementwise as _  # noqa: F401 - the rules read its names

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
