"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """A Weibull distribution of scale `scale` and shape `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expands = ("scale", "concentration", "concentration_reciprocal")
    scale: Any
    concentration: Any

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(rg.ones_like(self.scale), validate_args=validate_args)
        steps: list[Any] = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * rg.exp(rg.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        inner = (self.concentration - 1) / self.concentration
        return self.scale * inner ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        second = rg.exp(rg.lgamma(1 + 2 * self.concentration_reciprocal))
        first = rg.exp(2 * rg.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self) -> Any:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + rg.log(self.scale * inverse) + 1
