"""Relaxed Bernoulli variables."""

from __future__ import annotations

from typing import Any

from .._size import Size
from . import constraints
from ._odds import Odds
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import (
    broadcast_all,
    clamp_probs,
    given_parameter,
    is_number,
    need_one,
    uniform,
)

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds, Distribution):
    """The log-odds of a relaxed Bernoulli variable."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _expands = ("probs", "logits")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        need_one(probs, logits)
        given = logits if probs is None else probs
        if probs is None:
            (self.logits,) = broadcast_all(logits)
        else:
            (self.probs,) = broadcast_all(probs)
        super().__init__(Size() if is_number(given) else self.param_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new.temperature = self.temperature

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return given_parameter(self).size()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform(shape, probs))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value.mul(self.temperature)
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A number in (0, 1) that is nearer to 0 or 1 the lower the temperature is."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Any:
        """Return the temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Return log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Return probabilities."""
        return self.base_dist.probs
