"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import read

__all__ = ["HalfNormal"]


class Half(TransformedDistribution):
    """The distribution of the absolute value of a number that lies evenly around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale = read("base_dist.scale", "the scale of the whole distribution")

    def __init__(self, whole: Any, validate_args: bool | None) -> None:
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    @property
    def mode(self) -> Any:
        return rg.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        return self._log_density(value)

    def _log_density(self, value: Any) -> Any:
        return rg.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """The distribution of the absolute value of a normal number around 0."""

    _expands = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
