"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from ._odds import OddsParameter
from .distribution import Distribution
from .utils import every

__all__ = ["Binomial"]


class Binomial(OddsParameter, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` or log-odds `logits`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _expands = ("total_count", "probs", "logits")

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_with_count(total_count, probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with using(grad=False):
            return rg.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        choices = rg.lgamma(self.total_count + 1) - rg.lgamma(value + 1) - rg.lgamma(self.total_count - value + 1)
        # log(1 + exp(logits)), without overflow
        softplus = self.logits.clamp(min=0) + rg.log1p(rg.exp(-rg.abs(self.logits)))
        return value * self.logits - self.total_count * softplus + choices

    def entropy(self) -> Any:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rg.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return every(rg.arange(1 + count, dtype=self._param.dtype, device=self._param.device), self, expand)
