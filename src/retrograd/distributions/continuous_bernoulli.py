"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from ._odds import OddsParameter
from .exp_family import ExponentialFamily
from .utils import (
    binary_entropy,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    uniform,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(OddsParameter, ExponentialFamily):
    """A number in (0, 1) whose density is that of a Bernoulli variable, normalised; near 1/2 a series replaces the formulas."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _expands = ("probs", "logits")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not constraints.all_true(self.arg_constraints["probs"].check(self.probs)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self.param_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._lims = self._lims

    def _outside(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        """Return probabilities away from 1/2."""
        return rg.where(self._outside(), self.probs, self._lims[0] * rg.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Any:
        cut = self._cut_probs()
        below = rg.where(cut <= 0.5, cut, rg.zeros_like(cut))
        above = rg.where(cut >= 0.5, cut, rg.ones_like(cut))
        sizes = rg.where(cut <= 0.5, rg.log1p(-2.0 * below), rg.log(2.0 * above - 1.0))
        exact = rg.log(rg.abs(rg.log1p(-cut) - rg.log(cut))) - sizes
        x = (self.probs - 0.5).pow(2)
        return rg.where(self._outside(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (rg.log1p(-cut) - rg.log(cut))
        x = self.probs - 0.5
        return rg.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Any:
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (rg.log1p(-cut) - rg.log(cut)).pow(2)
        x = (self.probs - 0.5).pow(2)
        return rg.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @lazy_property
    def probs(self) -> Any:
        """Return probabilities away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_entropy(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        cut = self._cut_probs()
        inside = (rg.pow(cut, value) * rg.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        unbounded = rg.where(self._outside(), inside, value)
        above = rg.where(rg.ge(value, 1.0), rg.ones_like(unbounded), unbounded)
        return rg.where(rg.le(value, 0.0), rg.zeros_like(unbounded), above)

    def icdf(self, value: Any) -> Any:
        cut = self._cut_probs()
        exact = (rg.log1p(-cut + value * (2.0 * cut - 1.0)) - rg.log1p(-cut)) / (rg.log(cut) - rg.log1p(-cut))
        return rg.where(self._outside(), exact, value)

    def entropy(self) -> Any:
        log_probs0, log_probs1 = rg.log1p(-self.probs), rg.log(self.probs)
        return self.mean * (log_probs0 - log_probs1) - self._cont_bern_log_norm() - log_probs0

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = rg.where(outside, x, (self._lims[0] - 0.5) * rg.ones_like(x))
        exact = rg.log(rg.abs(rg.special.expm1(cut))) - rg.log(rg.abs(cut))
        return rg.where(outside, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
