"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .._modes import using
from ._around import LocScale
from .exp_family import ExponentialFamily
from .utils import _standard_normal, broadcast_all, read

__all__ = ["Normal"]

HALF_LOG_TURN = math.log(math.sqrt(2 * math.pi))


class Normal(LocScale, ExponentialFamily):
    """A normal distribution of mean `loc` and standard deviation `scale`.

    Args:
        loc: the mean
        scale: the standard deviation
        validate_args: whether parameters and values are checked

    Example:
        >>> d = torch.distributions.Normal(0.0, 1.0)
        >>> d.log_prob(torch.tensor(0.0)), d.mean
        (tensor(-0.9189), tensor(0.))
    """

    _mean_carrier_measure = 0
    _expands = ("loc", "scale")
    stddev = read("scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with using(grad=False):
            return rg.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return (
            self.loc
            + _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device) * self.scale
        )

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        distance = value - self.loc
        return -(distance * distance) / (2 * self.scale**2) - self.scale.log() - HALF_LOG_TURN

    def cdf(self, value: Any) -> Any:
        self._check_event(value)
        return 0.5 * (1 + rg.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * rg.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + rg.log(self.scale)

    @property
    def _natural_params(self) -> Any:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * rg.log(-math.pi / y)
