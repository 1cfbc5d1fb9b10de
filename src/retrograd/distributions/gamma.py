"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """A gamma distribution of shape `concentration` and rate `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expands = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = rg._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=rg.finfo(value.dtype).tiny)  # which the graph need not see
        return value

    def log_prob(self, value: Any) -> Any:
        value = rg.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_event(value)
        return (
            rg.xlogy(self.concentration, self.rate)
            + rg.xlogy(self.concentration - 1, value)
            - self.rate * value
            - rg.lgamma(self.concentration)
        )

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        return rg.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        return (
            self.concentration
            - rg.log(self.rate)
            + rg.lgamma(self.concentration)
            + (1.0 - self.concentration) * rg.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> Any:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rg.lgamma(x + 1) + (x + 1) * rg.log(-y.reciprocal())
