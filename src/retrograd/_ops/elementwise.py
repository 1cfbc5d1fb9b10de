"""Elementwise operations: each line is the operation's differential. See Note [An elementwise rule is the differential]."""

from __future__ import annotations

import cmath
import math

from .._core.passes import BITS
from .._core.primitive import elementwise
from .._native.program import formula
from .implementations import is_complex, named_kernel, numpy, typed, wide

# ---- arithmetic ----
add = elementwise("add", exact=True, dx=lambda xp, g: g, dy=lambda xp, g: g, shows="alpha=1")
subtract = elementwise(
    "subtract",
    torch="sub",
    exact=True,
    dx=lambda xp, g: g,
    dy=lambda xp, g: -g,
    plain={"y": numpy.negative},
    shows="alpha=1",
)
subtract.shows_edges("RsubBackward1", 1)


def _dtype_of(x, y):
    return x.dtype if hasattr(x, "dtype") else y.dtype


add_scaled = elementwise(
    "add_scaled",
    torch="add",
    statics=("alpha",),
    implementation=typed(
        formula(lambda xp, x, y, *, alpha: (x + y * alpha).astype(x.dtype, copy=False), numbers=("alpha",))
    ),
    dx=lambda xp, g: g,
    dy=lambda xp, g, alpha: g * alpha,
)
subtract_scaled = elementwise(
    "subtract_scaled",
    torch="sub",
    statics=("alpha",),
    implementation=typed(
        formula(lambda xp, x, y, *, alpha: (x - y * alpha).astype(x.dtype, copy=False), numbers=("alpha",))
    ),
    dx=lambda xp, g: g,
    dy=lambda xp, g, alpha: -g * alpha,
)
subtract_from = elementwise(
    "subtract_from",
    torch="rsub",
    statics=("alpha",),
    implementation=wide(
        lambda xp, x, y, *, alpha: (y - (x if alpha == 1 else x * alpha)).astype(_dtype_of(x, y), copy=False)
    ),
    dx=lambda xp, g, alpha: -g * alpha,
    dy=lambda xp, g: g,
)
multiply = elementwise(
    "multiply",
    exact=True,
    torch="mul",
    dx=lambda xp, g, y: g * y,
    dy=lambda xp, g, x: g * x,
    plain={"x": numpy.multiply, "y": numpy.multiply},
)
multiply.shows_edges("MulBackward1", 0)
divide = elementwise(
    "divide",
    torch="div",
    dx=lambda xp, g, y: g / y,
    dy=lambda xp, g, x, y: -g * ((x / y) / y),  # torch's order: (x/y)/y keeps large y from overflowing y*y
)
divide.shows_edges("DivBackward1", 0)


@divide.jvp
def divide_jvp(xp, t, y, out):
    # torch's order again: one division, so that small differences round as there
    dx, dy = t
    if dy is None:
        return dx / y
    return (-(dy * out) if dx is None else dx - dy * out) / y


negative = elementwise("negative", torch="neg", exact=True, dx=lambda xp, g: -g, plain={"x": numpy.negative})
reciprocal = elementwise(
    "reciprocal", implementation=formula(lambda xp, x: 1 / x), dx=lambda xp, g, out: -g * (out * out)
)
square = elementwise("square", torch="pow", exact=True, dx=lambda xp, g, x: g * (x * 2), shows="exponent=2 self")


def _remainder(xp, x, y):
    rest = xp.remainder_of(x, y)
    if rest.dtype.kind in "iu" or xp.module.count_nonzero(rest) == rest.size:
        return rest
    # a remainder of zero has the sign of the dividend, as in torch; NumPy gives it that of the divisor
    return xp.where(rest == 0, xp.module.copysign(rest, x), rest)


remainder = elementwise(
    "remainder",
    implementation=wide(_remainder),
    dx=lambda xp, g: g,
    dy=lambda xp, g, x, y: -g * xp.floor_divide(x, y),
)
remainder.shows_edges("RemainderBackward0", 0)
floor_divide = elementwise("floor_divide", inputs=("x", "y"))
fmod = elementwise(
    "fmod",
    implementation=wide(lambda xp, x, y: xp.remainder_towards_zero(x, y)),
    dx=lambda xp, g: g,
    dy=lambda xp, g, x, y: -g * xp.trunc(x / y),
)
fmod.shows_edges("FmodBackward0", 0)


def _power_dx(xp, g, x, y):
    # y == 0: zero even where x ** (y - 1) is infinite
    return xp.where(xp.equal(y, 0), xp.zeros_like(g), g * (y * x ** (y - 1)))


def _is_complex(value):
    return getattr(value, "_array", value).dtype.kind == "c"


def _power_dy(xp, g, x, y, out):
    # x == 0 with y >= 0: the limit is zero, where log(x) is infinite
    flat = xp.logical_and(xp.equal(x, 0), xp.greater_equal(xp.real(y), 0))
    base = xp.where(flat, xp.ones_like(x), x)
    if _is_complex(out) and not _is_complex(x):
        base = base + xp.zeros_like(out)  # a negative number has a complex logarithm
    return xp.where(flat, xp.zeros_like(g * out), g * (out * xp.log(base)))


def _power(xp, x, y):
    """Raise to a power; among integers, as torch, a negative power of anything but 1 and -1 is 0."""
    if y.dtype.kind not in "iu" or not (y < 0).any():
        return xp.power(x, y)
    sign = 1 - 2 * (y & 1)
    inverse = xp.where(x == 1, 1, xp.where(x == -1, sign, 0))
    return xp.where(y < 0, inverse, xp.power(x, xp.where(y < 0, 0, y)))


power = elementwise(
    "power", torch="pow", implementation=_power, dx=_power_dx, dy=_power_dy, shows="exponent=y result self"
)
power_scalar = elementwise(
    "power_scalar",
    torch="pow",
    statics=("exponent",),
    implementation=formula(lambda xp, x, *, exponent: xp.power_by(x, exponent), slow=True),
    dx=lambda xp, g, x, exponent: (
        xp.zeros_like(g * x) if exponent == 0 else g * (exponent * xp.power_scalar(x, exponent=exponent - 1))
    ),
)


def _power_base_dx(xp, g, x, out, base, x_dtype):
    grad = g * (out * _log(complex(base) if x_dtype.kind == "c" else base))
    # base 0: the limit is zero for exponents that are not negative
    return xp.where(xp.greater_equal(xp.real(x), 0), xp.zeros_like(grad), grad) if base == 0 else grad


def _log(base):
    """The logarithm of a number as a number, which leaves the dtype alone; NaN for negative ones, as torch."""
    if base == 0:
        return -math.inf
    if isinstance(base, complex):
        return cmath.log(base)
    return math.log(base) if base > 0 else math.nan


power_base = elementwise(
    "power_base",
    torch="pow",
    statics=("base",),
    implementation=lambda xp, x, *, base: _power(xp, base, x),
    dx=_power_base_dx,
    shows="exponent=x result self=base",
)

# ---- exponentials and roots ----
exp = elementwise("exp", dx=lambda xp, g, out: g * out, plain={"x": numpy.multiply})
expm1 = elementwise("expm1", dx=lambda xp, g, out: g * (out + 1))
log = elementwise("log", dx=lambda xp, g, x: g / x)
log1p = elementwise("log1p", dx=lambda xp, g, x: g / (x + 1))
log2 = elementwise("log2", dx=lambda xp, g, x: g / (x * math.log(2)))
log10 = elementwise("log10", dx=lambda xp, g, x: g / (x * math.log(10)))
sqrt = elementwise("sqrt", dx=lambda xp, g, out: g / (2 * out))
rsqrt = elementwise(
    "rsqrt",
    implementation=formula(lambda xp, x: 1 / xp.sqrt(x)),
    dx=lambda xp, g, out: -0.5 * g * xp.power_scalar(out, exponent=3),
)

# ---- trigonometry ----
sin = elementwise("sin", dx=lambda xp, g, x: g * xp.cos(x))
cos = elementwise("cos", dx=lambda xp, g, x: g * -xp.sin(x))
tan = elementwise("tan", dx=lambda xp, g, out: g * (1 + out * out))
sinh = elementwise("sinh", dx=lambda xp, g, x: g * xp.cosh(x))
cosh = elementwise("cosh", dx=lambda xp, g, x: g * xp.sinh(x))


def _tanh_back(g, out):
    """Go on in one new piece of memory: a small operation takes half the time that way."""
    slope = numpy.multiply(out, out)
    if type(slope) is not numpy.ndarray:  # of no dimensions: a number
        return g * (1 - slope)
    numpy.subtract(ONES[slope.dtype], slope, slope)
    return numpy.multiply(g, slope, slope)


tanh = elementwise("tanh", dx=lambda xp, g, out: xp.tanh_back(g, out), plain={"x": _tanh_back})
tanh_back = elementwise(  # one node for three, of which double backward differentiates every one
    "tanh_back",
    torch="tanh_backward",
    implementation=formula(lambda xp, x, y: x * (1 - y * y)),
    dx=lambda xp, g, y: xp.tanh_back(g, y),
    dy=lambda xp, g, x, y: -2 * g * x * y,
)
arcsin = elementwise("arcsin", torch="asin", dx=lambda xp, g, x: g * xp.rsqrt(1 - x * x))
arccos = elementwise("arccos", torch="acos", dx=lambda xp, g, x: g * -xp.rsqrt(1 - x * x))
arctan = elementwise("arctan", torch="atan", dx=lambda xp, g, x: g / (x * x + 1))
arctan2 = elementwise(
    "arctan2",
    exact=True,
    torch="atan2",
    dx=lambda xp, g, x, y: g * _over_square(xp, y, x * x + y * y),
    dy=lambda xp, g, x, y: g * _over_square(xp, -x, x * x + y * y),
)


def _over_square(xp, x, square):
    """Divide, giving 0 at the origin, as torch."""
    zero = xp.equal(square, 0)
    return xp.where(zero, 0, x / xp.where(zero, 1, square))


# ---- activations ----
ONES = {dtype: numpy.ones((), dtype) for dtype in BITS}  # NumPy's ufuncs take these in half the time of a number


def _sigmoid_back(g, out):
    slope = numpy.subtract(ONES[out.dtype], out)
    if type(slope) is not numpy.ndarray:
        return g * (slope * out)
    numpy.multiply(slope, out, slope)
    return numpy.multiply(g, slope, slope)


sigmoid = elementwise(
    "sigmoid",
    implementation=formula(
        lambda xp, x: 1 / (xp.exp(-x) + 1)
    ),  # exp may overflow to infinity, which gives 0, as in torch
    dx=lambda xp, g, out: xp.sigmoid_back(g, out),
    plain={"x": _sigmoid_back},
)
sigmoid_back = elementwise(
    "sigmoid_back",
    torch="sigmoid_backward",
    implementation=formula(lambda xp, x, y: x * ((1 - y) * y)),
    dx=lambda xp, g, y: xp.sigmoid_back(g, y),
    dy=lambda xp, g, x, y: g * x * (1 - 2 * y),
)


relu = elementwise(  # 0 at 0; NaN passes
    "relu",
    implementation=formula(lambda xp, x: xp.bounded(x, 0, None)),
    dx=lambda xp, g, out: xp.relu_back(g, out),
)
relu_back = elementwise(
    "relu_back",
    torch="threshold_backward",
    implementation=formula(lambda xp, x, y: xp.where(y <= 0, 0, x)),
    dx=lambda xp, g, y: xp.relu_back(g, y),
    dy=lambda xp, g: xp.zeros_like(g),
)
erf = elementwise("erf", dx=lambda xp, g, x: (2 / math.sqrt(math.pi)) * xp.exp(-(x * x)) * g)
ndtr = elementwise(
    "ndtr",
    torch="special_ndtr",
    implementation=named_kernel("ndtr"),
    dx=lambda xp, g, x: (1 / math.sqrt(2 * math.pi)) * xp.exp(-0.5 * (x * x)) * g,
)
log_sigmoid = elementwise(
    "log_sigmoid",
    torch="log_sigmoid",
    implementation=formula(lambda xp, x: xp.bounded(x, None, 0) - xp.log1p(xp.exp(-xp.abs(x))), slow=True),
    dx=lambda xp, g, x: g * xp.sigmoid(-x),
)
softplus = elementwise(
    "softplus",
    implementation=formula(lambda xp, x: xp.bounded(x, 0, None) + xp.log1p(xp.exp(-xp.abs(x))), slow=True),
    dx=lambda xp, g, x: g * xp.sigmoid(x),
)

# ---- size and sign ----
abs_ = elementwise("abs", dx=lambda xp, g, x: g * xp.conj(xp.sgn(x)))  # 0 at 0, as torch


def _sgn_dx(xp, g, x):
    # Only the part of the tangent across x turns x / |x|, and a real x has none. Symmetric, so its own adjoint.
    if not is_complex(x):
        return xp.zeros_like(g)
    size = xp.abs(x)
    zero = xp.logical_not(xp.greater(size, 0))  # or NaN
    direction = xp.sgn(x)
    across = g - direction * xp.real(xp.conj(direction) * g)
    return xp.where(zero, xp.zeros_like(across), across / xp.where(zero, xp.ones_like(size), size))


sgn = elementwise("sgn", dx=_sgn_dx, self_adjoint=True)


def _sign(xp, x):
    if xp.module is numpy and x.dtype.char in "fd" and x.size < 4096:
        out = numpy.sign(x)
        if numpy.count_nonzero(out == out) == out.size:  # NumPy's sign of NaN is NaN, torch's is 0
            return out
    return xp.sgn(x)


sign = elementwise("sign", dx=lambda xp, g: xp.zeros_like(g), implementation=_sign)
floor = elementwise("floor", exact=True, dx=lambda xp, g: xp.zeros_like(g))
ceil = elementwise("ceil", exact=True, dx=lambda xp, g: xp.zeros_like(g))
trunc = elementwise("trunc", exact=True, dx=lambda xp, g: xp.zeros_like(g))
round_ = elementwise("round", dx=lambda xp, g: xp.zeros_like(g), statics=("decimals",))

# ---- complex numbers ----
conj = elementwise("conj", torch="_conj", exact=True, dx=lambda xp, g: xp.conj(g))
real = elementwise("real", dx=lambda xp, g: g, may_alias=True)
imag = elementwise("imag", dx=lambda xp, g: g * -1j, may_alias=True)
complex_ = elementwise("complex", dx=lambda xp, g: g, dy=lambda xp, g: g * 1j)

# ---- choice; ties give half to each, NaN passes the gradient, as torch ----
maximum = elementwise(
    "maximum",
    exact=True,
    dx=lambda xp, g, x, y: xp.where(xp.equal(x, y), g / 2, xp.where(xp.less(x, y), 0, g)),
    dy=lambda xp, g, x, y: xp.where(xp.equal(x, y), g / 2, xp.where(xp.greater(x, y), 0, g)),
)
minimum = elementwise(
    "minimum",
    exact=True,
    dx=lambda xp, g, x, y: xp.where(xp.equal(x, y), g / 2, xp.where(xp.greater(x, y), 0, g)),
    dy=lambda xp, g, x, y: xp.where(xp.equal(x, y), g / 2, xp.where(xp.less(x, y), 0, g)),
)


def _condition(x):
    """Refuse a condition that saved-tensor hooks gave back as numbers."""
    dtype = getattr(x, "_array", x).dtype
    if dtype.kind != "b":
        from .. import _dtypes

        name = _dtypes.from_numpy(dtype)._scalar_name
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {name}")
    return x


where = elementwise(
    "where",
    exact=True,
    inputs=("x", "y", "z"),
    dy=lambda xp, g, x: xp.where(_condition(x), g, 0),
    dz=lambda xp, g, x: xp.where(_condition(x), 0, g),
    shows="condition=x",
)
clip = elementwise(
    "clip",
    torch="clamp",
    statics=("low", "high"),
    implementation=formula(lambda xp, x, *, low, high: xp.bounded(x, low, high), numbers=("low", "high")),
    dx=lambda xp, g, x, low, high: xp.where(_inside(xp, x, low, high), g, 0),
    shows={None: "max=high min=low self", "ClampMinBackward0": "min=low self", "ClampMaxBackward0": "max=high self"},
)


def _inside(xp, x, low, high):
    # the bounds themselves pass the gradient, NaN does not
    if low is None:
        return xp.less_equal(x, high)
    inside = xp.greater_equal(x, low)
    return inside if high is None else xp.logical_and(inside, xp.less_equal(x, high))


# Bounds that are tensors: unlike maximum and minimum, a tie gives everything to x.
clip_both = elementwise(
    "clip_both",
    torch="clamp",
    implementation=typed(formula(lambda xp, x, y, z: xp.minimum(xp.maximum(x, y), z))),
    dx=lambda xp, g, x, y, z: xp.where(xp.logical_and(xp.greater_equal(x, y), xp.less_equal(x, z)), g, 0),
    dy=lambda xp, g, x, y, z: xp.where(xp.logical_and(xp.less(y, z), xp.less(x, y)), g, 0),
    dz=lambda xp, g, x, y, z: xp.where(xp.logical_or(xp.greater(x, z), xp.less(z, y)), g, 0),
)
clip_both.shows_edges("ClampMinBackward1", 0, 1)
clip_both.shows_edges("ClampMaxBackward1", 0, 2)

# ---- division that rounds: flat, but it requires grad, as torch ----
divide_floor = elementwise(
    "divide_floor",
    torch="div",
    implementation=lambda xp, x, y: xp.floor_divide(x, y),
    dx=lambda xp, g: xp.zeros_like(g),
    dy=lambda xp, g: xp.zeros_like(g),
)
divide_trunc = elementwise(
    "divide_trunc",
    torch="div",
    implementation=lambda xp, x, y: _truncated(xp, x, y),
    dx=lambda xp, g: xp.zeros_like(g),
    dy=lambda xp, g: xp.zeros_like(g),
)


def _truncated(xp, x, y):
    if xp.module.result_type(x, y).kind not in "iu":
        return xp.trunc(xp.divide(x, y))
    down = xp.floor_divide(x, y)
    return down + ((down < 0) & (down * y != x))


# ---- three operands ----
lerp = elementwise(
    "lerp",
    inputs=("x", "y", "z"),
    implementation=typed(lambda xp, x, y, z: _lerp(xp, x, y, z)),
    dx=lambda xp, g, z: g * (1 - z),
    dy=lambda xp, g, z: g * z,
    dz=lambda xp, g, x, y: g * (y - x),
    shows="end=y self weight=z",
)
lerp.shows_edges("LerpBackward0", 0, 1)


@formula
def _lerp_by_each(xp, x, y, weight):
    # from the nearer end, so that both ends are reached exactly
    step = y - x
    return xp.where(xp.abs(weight) < 0.5, x + weight * step, y - step * (1 - weight))


def _lerp(xp, x, y, weight):
    if weight.ndim or x.dtype.itemsize == 2 or max(x.size, y.size) >= _lerp_by_each.start:
        return _lerp_by_each(xp, x, y, weight)
    step = y - x
    return x + weight * step if abs(weight) < 0.5 else y - step * (1 - weight)


_plus_product = formula(lambda xp, x, y, z: x + y * z)
_plus_multiple = formula(lambda xp, x, y, z, *, value: x + y * z * value, numbers=("value",))


def _addcmul(xp, x, y, z, *, value):
    return _plus_product.direct(xp, x, y, z) if value == 1 else _plus_multiple.direct(xp, x, y, z, value=value)


addcmul = elementwise(
    "addcmul",
    statics=("value",),
    implementation=typed(_addcmul),
    dx=lambda xp, g: g,
    dy=lambda xp, g, z, value: g * (z * value),
    dz=lambda xp, g, y, value: g * (y * value),
    shows="tensor1=y tensor2=z value",
)
addcdiv = elementwise(
    "addcdiv",
    statics=("value",),
    implementation=typed(formula(lambda xp, x, y, z, *, value: x + y / z * value, numbers=("value",))),
    dx=lambda xp, g: g,
    dy=lambda xp, g, z, value: g * (value / z),
    dz=lambda xp, g, y, z, value: -g * (value * y / (z * z)),
    shows="tensor1=y tensor2=z value",
)

# ---- no derivative ----
for _name in """
equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
bitwise_xor
""".split():  # noqa: SIM905 - names read better as text
    elementwise(_name, inputs=("x", "y"), exact=True)
for _name in ["logical_not", "invert", "isnan", "isinf", "isfinite"]:
    elementwise(_name, inputs=("x",), exact=True)
compared = elementwise(
    "compared",
    statics=("comparison",),
    implementation=typed(lambda xp, x, y, *, comparison: getattr(xp, comparison)(x, y).astype(x.dtype)),
    dx=lambda xp, g: xp.zeros_like(g),
    dy=lambda xp, g: xp.zeros_like(g),
)
for _name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge"):
    compared.shows_edges(f"{_name}Backward0", 0)
zeros_like = elementwise("zeros_like", implementation=lambda xp, x: xp.module.zeros_like(x), inputs=("x",))
ones_like = elementwise("ones_like", implementation=lambda xp, x: xp.module.ones_like(x), inputs=("x",))
