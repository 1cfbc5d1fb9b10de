"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, read

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """A Gumbel distribution around `loc` of scale `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _expands = ("loc", "scale")
    loc: Any
    scale: Any
    mode = read("loc")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = rg.finfo(self.loc.dtype)
        low, high = rg.full_like(self.loc, limits.tiny), rg.full_like(self.loc, 1 - limits.eps)
        base = Uniform(low, high, validate_args=validate_args)
        super().__init__(base, _steps(self.loc, self.scale), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)


def _steps(loc: Any, scale: Any) -> list[Any]:
    """Return the maps from a uniform number u to loc - scale log(-log u)."""
    log = ExpTransform().inv
    return [log, AffineTransform(loc=0, scale=-rg.ones_like(scale)), log, AffineTransform(loc=loc, scale=-scale)]
