"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, where

__all__ = ["Kumaraswamy"]


def _moment(a: Any, b: Any, n: int) -> Any:
    """Return the n-th moment."""
    order = 1 + n / a
    return rg.exp(b.log() + rg.lgamma(order) + rg.lgamma(b) - rg.lgamma(order + b))


class Kumaraswamy(TransformedDistribution):
    """A Kumaraswamy distribution of shapes `concentration1` and `concentration0`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ("concentration1", "concentration0")
    concentration1: Any
    concentration0: Any

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros, ones = rg.zeros_like(self.concentration0), rg.ones_like(self.concentration0)
        steps: list[Any] = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(zeros, ones, validate_args=validate_args), steps, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        mode = (a.reciprocal() * (-b).log1p() - (-a * b).log1p()).exp()
        return where((b < 1) | (a < 1), math.nan, mode)

    @property
    def variance(self) -> Any:
        return _moment(self.concentration1, self.concentration0, 2) - rg.pow(self.mean, 2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = rg.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - rg.log(a) - rg.log(b)
