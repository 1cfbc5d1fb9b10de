"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from ._around import LocScale
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(LocScale):
    """A Laplace distribution around `loc` of scale `scale`."""

    _expands = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = rg.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * rg.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        return -rg.log(2 * self.scale) - rg.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * rg.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * rg.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + rg.log(2 * self.scale)
