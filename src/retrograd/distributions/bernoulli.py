"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from ._odds import OddsParameter
from .exp_family import ExponentialFamily
from .utils import binary_entropy, broadcast_all, every, read

__all__ = ["Bernoulli"]


class Bernoulli(OddsParameter, ExponentialFamily):
    """1 with probability `probs`, or of log-odds `logits`, else 0.

    Args:
        probs: the probability of 1
        logits: or its log-odds
        validate_args: whether parameters and values are checked

    Example:
        >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expands = ("probs", "logits")
    mean = read("probs")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = math.nan
        return mode

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with using(grad=False):
            return rg.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_entropy(logits, value)

    def entropy(self) -> Any:
        return binary_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        return every(rg.arange(2, dtype=self._param.dtype, device=self._param.device), self, expand)

    @property
    def _natural_params(self) -> Any:
        return (rg.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return rg.log1p(rg.exp(x))
