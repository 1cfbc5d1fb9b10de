"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, read, uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """A generalised Pareto distribution above `loc` of scale `scale` and shape `concentration`."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expands = ("loc", "scale", "concentration")
    mode = read("loc")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def _shape_or_one(self) -> tuple[Any, Any]:
        """Tell where the shape is 0, where formulas are exponential, and return it with 1 there."""
        zero = rg.isclose(self.concentration, rg.zeros_like(self.concentration))
        return zero, rg.where(zero, rg.ones_like(self.concentration), self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        z = self._z(value)
        zero, shape = self._shape_or_one()
        # outside of the support the logarithm is NaN, which no gradient must meet
        log_z = rg.log1p(shape * z)
        return -self.scale.log() + rg.where(zero, -z, -(1 + shape.reciprocal()) * log_z)

    def log_survival_function(self, value: Any) -> Any:
        """Return log(1 - cdf)."""
        self._check_event(value)
        z = self._z(value)
        zero, shape = self._shape_or_one()
        return rg.where(zero, -z, -rg.log1p(shape * z) / shape)

    def log_cdf(self, value: Any) -> Any:
        """Return log(cdf)."""
        self._check_event(value)
        return rg.log1p(-rg.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        return rg.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, shape = self._shape_or_one()
        log_left = rg.log1p(-value)
        return rg.where(
            zero, self.loc - self.scale * log_left, self.loc + self.scale * rg.expm1(-shape * log_left) / shape
        )

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        shape = self.concentration
        valid = shape < 1
        return rg.where(valid, self.loc + self.scale / (1 - rg.where(valid, shape, 0.5)), math.nan)

    @property
    def variance(self) -> Any:
        valid = self.concentration < 0.5
        shape = rg.where(valid, self.concentration, 0.25)
        return rg.where(valid, self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape)), math.nan)

    def entropy(self) -> Any:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = rg.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
