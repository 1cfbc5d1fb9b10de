"""The functions of `torch.special`, some of which are functions of `torch` and methods as well."""

from __future__ import annotations

from typing import Any

from ..._modes import current_mode
from ..._ops import elementwise as e
from ..._ops import elementwise_pairs as o
from ..._ops import special as ops
from ...overrides import declared, overridable_as, takes_out
from .. import _base
from .._aliasing.inplace import inplace
from .._recording.operands import plain_scalar
from .._recording.record import Elementwise, binary, unary
from .._recording.refusals import kernel, refused
from .elementwise_pairs import variants, with_number

# ---- the error function and the normal distribution ----
refused("erfc", "erfinv", c=kernel("{name}_vml_cpu"))
refused("erfcx", "log_ndtr", "ndtri", hc=kernel("{name}_cpu"))
refused("ndtr", c=kernel("erf_vml_cpu"))
refused("entr", c=kernel("entr_cpu"))
erfc = unary(ops.erfc, "erfc", integers_to_float=True)
erfcx = unary(ops.erfcx, "erfcx", integers_to_float=True)
erfinv = declared(unary(ops.erfinv, "erfinv", integers_to_float=True), raised="cuda")
_ndtr = unary(e.ndtr, "ndtr", integers_to_float=True)
ndtri = unary(ops.ndtri, "ndtri", integers_to_float=True)
log_ndtr = unary(ops.log_ndtr, "log_ndtr", integers_to_float=True)
entr = unary(ops.entr, "entr", integers_to_float=True)


@takes_out
def ndtr(input: Any) -> Any:
    """Compute ndtr of each element."""
    if isinstance(input, _base.Tensor) and current_mode().tracks and input._edge is not None:
        input = input.clone()  # torch keeps what it has scaled, not the input: that may be written into
    return _ndtr(input)


# ---- the gamma function ----
refused("lgamma", c=kernel("lgamma_vml_cpu"))
refused("digamma", "trigamma", "polygamma", c=kernel("{name}"))
refused("igamma", "igammac", bic=kernel("{name}_cpu"))
refused("mvlgamma", c=kernel("arange_cpu"))
refused(
    "mvlgamma",
    in_place=True,
    i=(RuntimeError, "mvlgamma: result type {} can't be cast to the desired output type Float"),
)
refused("zeta", hc=kernel("zeta_cpu"))
refused("xlog1py", c=kernel("xlog1py_cpu"))
lgamma = unary(ops.lgamma, "lgamma", integers_to_float=True)
digamma = unary(ops.digamma, "digamma", integers_to_float=True)
igamma = binary(ops.igamma, "igamma", numbers="none")
igammac = binary(ops.igammac, "igammac", numbers="none")
_POLYGAMMA = {
    node: [Elementwise(ops.polygamma, name, node, True) for name in ("digamma", "trigamma", "polygamma")]
    for node in ("PolygammaBackward0", "PolygammaBackward1")
}
_MVLGAMMA = Elementwise(ops.mvlgamma, "mvlgamma", None, True)
_ZETA = variants(ops.zeta, "zeta", "SpecialZetaBackward")
_XLOG1PY = variants(o.xlog1py, "xlog1py", "SpecialXlog1PyBackward")


@takes_out
def polygamma(n: int, input: Any) -> Any:
    """Compute the n-th derivative of the digamma function."""
    if isinstance(n, _base.Tensor) and isinstance(input, int):
        n, input = input, n  # as a method
    return _polygamma(input, n)


def _polygamma(input: Any, n: int, node: str = "PolygammaBackward0") -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _POLYGAMMA[node][min(n, 2)].slow((input,), {"n": n})


polygamma_ = inplace("polygamma", lambda input, n: _polygamma(input, n, "PolygammaBackward1"))


MOST = 1 << 38  # terms of a sum, which torch has in memory at once


@takes_out
def mvlgamma(input: Any, p: int) -> Any:
    """Compute the logarithm of the gamma function of p dimensions."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input._array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p * input._array.size > MOST:
        raise MemoryError(f"the terms of {p} dimensions would be {p * input._array.size} elements")
    return _MVLGAMMA.slow((input,), {"p": p})


@takes_out
def zeta(input: Any, other: Any) -> Any:
    """Compute the Hurwitz zeta function."""
    return with_number(_ZETA, input, other)


@takes_out
def xlog1py(input: Any, other: Any) -> Any:
    """Compute x log(1 + y), which is 0 where x is 0."""
    return with_number(_XLOG1PY, input, other)


# ---- Bessel functions ----
def _bessel(name: str) -> Any:
    refused(name, hc=kernel(f"{name}_cpu"))
    return unary(getattr(ops, name), name, integers_to_float=True)


refused("i0", c=kernel("i0_vml_cpu"))
refused("i0e", "i1", "i1e", c=kernel("{name}_cpu"))
i0 = unary(ops.i0, "i0", integers_to_float=True)
i0e = unary(ops.i0e, "i0e", "SpecialI0EBackward0", integers_to_float=True)
i1 = unary(ops.i1, "i1", integers_to_float=True)
i1e = unary(ops.i1e, "i1e", "SpecialI1EBackward0", integers_to_float=True)
airy_ai = _bessel("airy_ai")
bessel_j0 = _bessel("bessel_j0")
bessel_j1 = _bessel("bessel_j1")
bessel_y0 = _bessel("bessel_y0")
bessel_y1 = _bessel("bessel_y1")
modified_bessel_i0 = _bessel("modified_bessel_i0")
modified_bessel_i1 = _bessel("modified_bessel_i1")
modified_bessel_k0 = _bessel("modified_bessel_k0")
modified_bessel_k1 = _bessel("modified_bessel_k1")
scaled_modified_bessel_k0 = _bessel("scaled_modified_bessel_k0")
scaled_modified_bessel_k1 = _bessel("scaled_modified_bessel_k1")
spherical_bessel_j0 = _bessel("spherical_bessel_j0")


# ---- orthogonal polynomials ----
def _polynomial(name: str) -> Any:
    rules = Elementwise(ops.POLYNOMIALS[name], name, None, True)
    refused(name, hc=kernel(f"{name}_cpu"))

    def call(input: Any, n: Any) -> Any:
        return rules.slow((plain_scalar(input), plain_scalar(n)), {"order": 0})

    return overridable_as(name, call, f"Compute the {name.replace('_', ' ')} of degree n.", out=True)


chebyshev_polynomial_t = _polynomial("chebyshev_polynomial_t")
chebyshev_polynomial_u = _polynomial("chebyshev_polynomial_u")
chebyshev_polynomial_v = _polynomial("chebyshev_polynomial_v")
chebyshev_polynomial_w = _polynomial("chebyshev_polynomial_w")
hermite_polynomial_h = _polynomial("hermite_polynomial_h")
hermite_polynomial_he = _polynomial("hermite_polynomial_he")
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l")
legendre_polynomial_p = _polynomial("legendre_polynomial_p")
shifted_chebyshev_polynomial_t = _polynomial("shifted_chebyshev_polynomial_t")
shifted_chebyshev_polynomial_u = _polynomial("shifted_chebyshev_polynomial_u")
shifted_chebyshev_polynomial_v = _polynomial("shifted_chebyshev_polynomial_v")
shifted_chebyshev_polynomial_w = _polynomial("shifted_chebyshev_polynomial_w")
