"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from ._odds import OddsParameter
from .distribution import Distribution
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OddsParameter, Distribution):
    """How many trials succeed before `total_count` have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expands = ("total_count", "probs", "logits")

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_with_count(total_count, probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * rg.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / rg.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=rg.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            return rg.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        logsigmoid = rg.nn.functional.logsigmoid
        unnormalized = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = rg.lgamma(self.total_count + value) - rg.lgamma(1.0 + value) - rg.lgamma(self.total_count)
        choices = choices.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized + choices
