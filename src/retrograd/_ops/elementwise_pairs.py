"""Elementwise functions of two tensors that few programs use."""

from __future__ import annotations

import math
import operator

from .._core.primitive import elementwise
from .._native.program import formula
from . import elementwise_unary as _  # noqa: F401 - the rules read its names
from .implementations import typed, ufunc, wide

copysign = elementwise(
    "copysign",
    implementation=ufunc("copysign"),
    dx=lambda xp, g, x, out: g * xp.where(xp.equal(x, 0), xp.zeros_like(out), out / x),  # 0 at 0, as torch
    dy=lambda xp, g: xp.zeros_like(g),
)
copysign.shows_edges("CopysignBackward1", 0)

# A tie, and a NaN, give everything to the first operand, as torch.
fmax = elementwise(
    "fmax",
    implementation=ufunc("fmax"),
    dx=lambda xp, g, x, y: xp.where(xp.logical_or(xp.greater_equal(x, y), xp.isnan(y)), g, 0),
    dy=lambda xp, g, x, y: xp.where(xp.logical_or(xp.greater_equal(x, y), xp.isnan(y)), 0, g),
)
fmin = elementwise(
    "fmin",
    implementation=ufunc("fmin"),
    dx=lambda xp, g, x, y: xp.where(xp.logical_or(xp.less_equal(x, y), xp.isnan(y)), g, 0),
    dy=lambda xp, g, x, y: xp.where(xp.logical_or(xp.less_equal(x, y), xp.isnan(y)), 0, g),
)


hypot = elementwise(
    "hypot",
    implementation=ufunc("hypot"),
    dx=lambda xp, g, x, out: g * (x / out),
    dy=lambda xp, g, y, out: g * (y / out),
)


LARGE = 1024


def _log_of_sum(name, exp, factor):
    """Compute the logarithm of a sum of powers; many in passes over whole arrays, as NumPy's own goes one by one."""

    def implementation(xp, x, y):
        if x.dtype.kind != "c" and x.size < LARGE and y.size < LARGE:
            return getattr(xp.module, name)(x, y)
        if x.dtype.kind != "c":
            out = xp.maximum(x, y) + xp.log1p(exp(xp, -xp.abs(x - y))) * factor
        else:
            first = x.real >= y.real
            large, small = xp.where(first, x, y), xp.where(first, y, x)
            out = large + xp.log1p(exp(xp, small - large))
        lost = xp.isnan(out)
        if lost.any():  # two infinities of one sign are their own sum
            out = xp.where(xp.logical_and(lost, xp.equal(x, y)), x, out)
        return out

    return wide(implementation)


logaddexp = elementwise(
    "logaddexp",
    implementation=_log_of_sum("logaddexp", lambda xp, x: xp.exp(x), 1),
    dx=lambda xp, g, x, y: g / (1 + xp.exp(y - x)),
    dy=lambda xp, g, x, y: g / (1 + xp.exp(x - y)),
)
logaddexp2 = elementwise(
    "logaddexp2",
    implementation=_log_of_sum("logaddexp2", lambda xp, x: xp.exp2(x), 1 / math.log(2)),
    dx=lambda xp, g, x, y: g / (1 + xp.exp2(y - x)),
    dy=lambda xp, g, x, y: g / (1 + xp.exp2(x - y)),
)
nextafter = elementwise(
    "nextafter",
    implementation=lambda xp, x, y: xp.module.nextafter(x, y),
    dx=lambda xp, g, x, y: xp.where(xp.equal(x, y), 0, g),  # as torch, which has no derivative where x stays
    dy=lambda xp, g, x, y: xp.zeros_like(g),
)
ldexp = elementwise(
    "ldexp",
    implementation=wide(lambda xp, x, y: x * xp.module.exp2(y)),
    dx=lambda xp, g, y: g * xp.exp2(y),
    dy=lambda xp, g, out: g * (out * math.log(2)),
)


# ---- x times a logarithm, which is 0 where x is 0 ----
def _times(logarithm):
    @formula(slow=True)
    def whole(xp, x, y):
        flat = xp.logical_and(xp.equal(x, 0), xp.logical_not(xp.isnan(y)))
        return xp.where(flat, 0, x * getattr(xp, logarithm)(y))

    def implementation(xp, x, y):
        if max(x.size, y.size) >= whole.start:
            return whole(xp, x, y)
        out = x * getattr(xp.module, logarithm)(y)
        if xp.module.count_nonzero(x) == x.size:
            return out
        return whole.formula(xp, x, y)

    implementation = wide(implementation)
    implementation.formula = whole.formula
    return implementation


def _xlogy_dx(xp, g, x, y):
    flat = xp.logical_and(xp.equal(x, 0), xp.less_equal(y, 0))
    return xp.where(flat, xp.zeros_like(g), xp.xlogy(g, y))


def _xlog1py_dx(xp, g, x, y):
    flat = xp.logical_and(xp.equal(x, 0), xp.less_equal(y, -1))
    return xp.where(flat, xp.zeros_like(g), xp.xlog1py(g, y))


xlogy = elementwise(
    "xlogy",
    implementation=_times("log"),
    dx=_xlogy_dx,
    dy=lambda xp, g, x, y: g * x / y,
)
xlogy.shows_edges("XlogyBackward1", 1)
xlogy.shows_edges("XlogyBackward2", 0)
xlog1py = elementwise(
    "xlog1py",
    torch="special_xlog1py",
    implementation=_times("log1p"),
    dx=_xlog1py_dx,
    dy=lambda xp, g, x, y: g * x / (y + 1),
)
xlog1py.shows_edges("SpecialXlog1PyBackward1", 1)
xlog1py.shows_edges("SpecialXlog1PyBackward2", 0)

# ---- complex numbers of size and angle ----
polar = elementwise(
    "polar",
    implementation=lambda xp, x, y: xp.complex(x * xp.cos(y), x * xp.sin(y)),
    dx=lambda xp, g, y: g * xp.exp(xp.complex(xp.zeros_like(y), y)),
    dy=lambda xp, g, out: g * (out * 1j),
)


# ---- no derivative ----
def _heaviside(xp, x, y):
    return xp.where(xp.equal(x, 0), y, xp.greater(x, 0).astype(y.dtype))


heaviside = elementwise("heaviside", inputs=("x", "y"), implementation=typed(_heaviside))
gcd = elementwise("gcd", inputs=("x", "y"), implementation=lambda xp, x, y: xp.module.gcd(x, y))
lcm = elementwise("lcm", inputs=("x", "y"), implementation=lambda xp, x, y: xp.module.lcm(x, y))


def _shift_left(xp, x, y):
    # by a negative number, or by all the bits there are: nothing is left
    beyond = xp.logical_or(xp.less(y, 0), xp.greater_equal(y, 8 * x.dtype.itemsize))
    return xp.where(beyond, xp.zeros_like(x), xp.module.left_shift(x, xp.where(beyond, 0, y))).astype(x.dtype)


def _shift_right(xp, x, y):
    # by a negative number, or by all the bits there are: the sign is left
    most = 8 * x.dtype.itemsize - (x.dtype.kind == "i")
    beyond = xp.logical_or(xp.less(y, 0), xp.greater_equal(y, most))
    if x.dtype.kind == "u":
        return xp.where(beyond, xp.zeros_like(x), xp.module.right_shift(x, xp.where(beyond, 0, y))).astype(x.dtype)
    return xp.module.right_shift(x, xp.where(beyond, most, y)).astype(x.dtype)


def _by_number(shift, checked):
    """Shift an array by a number that leaves some of its bits at once; look at everything else element by element."""
    checked = typed(checked)

    def implementation(xp, x, y):
        if type(y) is int and 0 <= y < 8 * x.dtype.itemsize - 1:
            return shift(x, y)
        return checked(xp, x, y)

    return implementation


left_shift = elementwise("left_shift", inputs=("x", "y"), implementation=_by_number(operator.lshift, _shift_left))
right_shift = elementwise("right_shift", inputs=("x", "y"), implementation=_by_number(operator.rshift, _shift_right))
