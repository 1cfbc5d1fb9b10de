"""Special functions, as torch.special."""

from ..tensor._functions.elementwise import erf, expm1, log1p, round
from ..tensor._functions.elementwise import sigmoid as expit
from ..tensor._functions.elementwise_pairs import xlogy
from ..tensor._functions.elementwise_unary import exp2, logit, sinc
from ..tensor._functions.reduce import log_softmax, logsumexp, softmax
from ..tensor._functions.special import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    digamma,
    entr,
    erfc,
    erfcx,
    erfinv,
    hermite_polynomial_h,
    hermite_polynomial_he,
    i0,
    i0e,
    i1,
    i1e,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    log_ndtr,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    polygamma,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
    spherical_bessel_j0,
    xlog1py,
    zeta,
)
from ..tensor._functions.special import digamma as psi
from ..tensor._functions.special import igamma as gammainc
from ..tensor._functions.special import igammac as gammaincc
from ..tensor._functions.special import lgamma as gammaln
from ..tensor._functions.special import mvlgamma as multigammaln

__all__ = [name for name in dir() if not name.startswith("_")]
