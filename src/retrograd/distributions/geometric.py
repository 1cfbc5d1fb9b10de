"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from . import constraints
from ._odds import Odds
from .distribution import Distribution
from .utils import binary_entropy, broadcast_all, given_parameter

__all__ = ["Geometric"]


class Geometric(Odds, Distribution):
    """The number of failures before the first success, of probability `probs` or of log-odds `logits`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expands = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(given_parameter(self).size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            positive = value > 0
            if not constraints.all_true(positive):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value.detach()[~positive]}"
                )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return rg.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        tiny = rg.finfo(self.probs.dtype).tiny
        with using(grad=False):
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        value, probs = broadcast_all(value, self.probs)
        never = (probs == 1) & (value == 0)
        return value * (-probs.masked_fill(never, 0)).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return binary_entropy(self.logits, self.probs) / self.probs
