"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from ._around import AroundLoc
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_i0(x: Any) -> Any:
    """Return the logarithm of the modified Bessel function of order 0."""
    return rg.special.i0e(x).log() + x


class VonMises(AroundLoc, Distribution):
    """A distribution of angles around `loc`, the narrower the greater `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        validate_args = self.__dict__.get("_validate_args")
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        return self.concentration * rg.cos(value - self.loc) - math.log(2 * math.pi) - _log_i0(self.concentration)

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(rg.double)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(rg.double)

    @lazy_property
    def _proposal_r(self) -> Any:
        """Return the parameter of the wrapped Cauchy distribution from which angles are proposed (Best and Fisher 1979)."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        return rg.where(kappa < 1e-5, 1 / kappa + kappa, exact)  # a series where the formula loses its digits

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with using(grad=False):
            x = rg.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            r, kappa = self._proposal_r, self._concentration
            done = rg.zeros(shape, dtype=rg.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = rg.rand((3, *shape), dtype=x.dtype, device=x.device).unbind()
                z = rg.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = rg.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @lazy_property
    def variance(self) -> Any:
        """Return the circular variance."""
        return 1 - rg.special.i1e(self.concentration) / rg.special.i0e(self.concentration)
