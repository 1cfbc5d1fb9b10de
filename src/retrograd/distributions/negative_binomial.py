"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, given_parameter, lazy_property, logits_to_probs, need_one, probs_to_logits

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Distribution):
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
        need_one(probs, logits)
        if probs is None:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
        else:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def _param(self) -> Any:
        return given_parameter(self)

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
    def logits(self) -> Any:
        """Return log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Return probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return self._param.size()

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=rg.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            return rg.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logsigmoid = rg.nn.functional.logsigmoid
        unnormalized = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = rg.lgamma(self.total_count + value) - rg.lgamma(1.0 + value) - rg.lgamma(self.total_count)
        choices = choices.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized + choices
