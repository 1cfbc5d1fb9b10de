"""Mathematical functions, in float32 and float64, as expressions: no calls, no branches, no tables.

Each function maps expressions of one float type to another of that type. A loop over it vectorises, because it consists of
arithmetic and selections alone. Results are within 2 units in the last place of the exact ones, also where they are
denormal, and are right for infinities, NaN and zeros of both signs. `tools/check_math.py` measures that over every float32 there is.
The polynomials are fitted by `tools/fit_math.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .exponentials import (
    arccosh,
    arcsinh,
    arctanh,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    power,
    sigmoid,
    sinh,
    tanh,
)
from .expression import Expr
from .special import (
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    exact_gelu,
    exact_gelu_slope,
    half_gelu,
    half_gelu_slope,
    i0,
    i0e,
    i1,
    i1e,
    lgamma,
    log_ndtr,
    ndtr,
)
from .trigonometry import arccos, arcsin, arctan, arctan2, cos, sin, tan

# what formulas may call, by its name in `xp`
FUNCTIONS: Final[dict[str, Callable[..., Expr]]] = {
    function.__name__: function
    for function in (
        arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, cos, cosh, digamma, erf, erfc, erfcx, erfinv,
        exact_gelu, exact_gelu_slope, exp, exp2, expm1, i0, i0e, i1, i1e, lgamma, log, log10, log1p, log2,
        log_ndtr, ndtr, power, sigmoid, sin, sinh, tan, tanh,
    )
}  # fmt: skip
# those that are as exact as that in float32 only
NARROW: Final = ("digamma", "lgamma", "log_ndtr")
# What takes their place where nothing but a product or a choice lies between their result and its rounding to half precision. They are
# 2**-15 off, which is a sixteenth of the last place in float16.
HALF: Final[dict[str, Callable[..., Expr]]] = {"exact_gelu": half_gelu, "exact_gelu_slope": half_gelu_slope}
