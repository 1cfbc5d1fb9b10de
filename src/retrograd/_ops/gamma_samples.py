"""Samples of gamma and Dirichlet distributions, which follow their parameters: implicit reparameterisation.

A sample x of a distribution function F(x; a) keeps F(x; a) fixed, so its slope by a is -(dF/da) / (dF/dx). scipy has F, of which a
central difference gives dF/da to nine digits; torch's own slopes have three to four.
"""

from __future__ import annotations

from .._core.primitive import elementwise, general
from .implementations import numpy, scipy_function

STEP = 1e-5  # relative to the parameter


def _slope(lower, upper, xp, parameter, density):
    """Return -(dF/da) / density of two ways to compute F: itself, and 1 - F where F is nearly 1."""
    step = parameter * STEP
    above, below = parameter + step, parameter - step
    right = lower(parameter) > 0.5
    change = xp.where(right, upper(below) - upper(above), lower(above) - lower(below))
    return -change / ((above - below) * density)


def _gamma_slope(xp, a, x):
    dtype = x.dtype
    a, x = a.astype(numpy.float64), x.astype(numpy.float64)
    lower, upper, gammaln = (scipy_function(xp, name) for name in ("gammainc", "gammaincc", "gammaln"))
    with numpy.errstate(all="ignore"):
        density = xp.exp((a - 1) * xp.log(x) - x - gammaln(a))
        return _slope(lambda a: lower(a, x), lambda a: upper(a, x), xp, a, density).astype(dtype)


def _dirichlet_slope(xp, x, a, total):
    dtype = x.dtype
    x, a, total = (one.astype(numpy.float64) for one in (x, a, total))
    b = total - a
    lower, betaln = (scipy_function(xp, name) for name in ("betainc", "betaln"))
    with numpy.errstate(all="ignore"):
        density = xp.exp((a - 1) * xp.log(x) + b * xp.log1p(-x) - betaln(a, b))  # once more times 1 - x
        slope = _slope(lambda a: lower(a, b, x), lambda a: lower(b, a, 1 - x), xp, a, density)
        return xp.where(x < 1, slope, 0).astype(dtype)


def _refuse(name):
    def rule(xp, g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


standard_gamma_grad = elementwise(
    "standard_gamma_grad",
    implementation=_gamma_slope,
    dx=_refuse("_standard_gamma_grad"),
    dy=_refuse("_standard_gamma_grad"),
)
dirichlet_grad = elementwise(
    "dirichlet_grad",
    implementation=_dirichlet_slope,
    dx=_refuse("_dirichlet_grad"),
    dy=_refuse("_dirichlet_grad"),
    dz=_refuse("_dirichlet_grad"),
)
gamma_sample = elementwise(
    "gamma_sample",
    inputs=("x", "y"),
    implementation=lambda xp, x, y: y,
    dx=lambda xp, g, x, out: g * xp.standard_gamma_grad(x, out),
)


@general
def dirichlet_sample(xp, x, y):
    """Return samples y that follow their concentrations x."""
    return y


def _last_sum(xp, x):
    return xp.sum(x, axis=(len(x.shape) - 1,), keepdims=True)  # batching rules count axes from the left


def _dirichlet_slopes(xp, x, out):
    total = xp.broadcast_to(_last_sum(xp, x), shape=tuple(x.shape))
    return xp.dirichlet_grad(out, x, total)


@dirichlet_sample.vjp("x")
def dirichlet_sample_dx(xp, g, x, out):
    return _dirichlet_slopes(xp, x, out) * (g - _last_sum(xp, out * g))


@dirichlet_sample.jvp
def dirichlet_sample_jvp(xp, t, x, out):
    moved = _dirichlet_slopes(xp, x, out) * t[0]
    return moved - out * _last_sum(xp, moved)


@dirichlet_sample.batch
def dirichlet_sample_batch(call, args, batched, size):
    return call(*args)
