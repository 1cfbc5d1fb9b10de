"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, read

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """A Poisson distribution of rate `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expands = ("rate",)
    mean = read("rate")
    variance = read("rate")

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            return rg.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> Any:
        return (rg.log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return rg.exp(x)
