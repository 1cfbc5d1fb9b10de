"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, uniform

__all__ = ["Uniform"]


class Uniform(Distribution):
    """A uniform distribution between `low` and `high`.

    Args:
        low: the lower end
        high: the upper end, which is not drawn
        validate_args: whether parameters and values are checked

    Example:
        >>> torch.distributions.Uniform(0.0, 4.0).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)
    """

    has_rsample = True
    _expands = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        units = uniform(self._extended_shape(sample_shape), self.low)
        return self.low + units * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return rg.log(inside) - rg.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return rg.log(self.high - self.low)
