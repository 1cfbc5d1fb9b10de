"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all, read, where

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom, around `loc`, of scale `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expands = ("df", "loc", "scale")
    mode = read("loc")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Any:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        wide = where(self.df > 2, finite, math.inf)
        return where(self.df <= 1, math.nan, wide)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * rg.rsqrt(z / self.df))

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + rg.lgamma(0.5 * self.df)
            - rg.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * rg.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        lbeta = rg.lgamma(0.5 * self.df) + math.lgamma(0.5) - rg.lgamma(0.5 * (self.df + 1))
        slopes = rg.digamma(0.5 * (self.df + 1)) - rg.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * slopes + 0.5 * self.df.log() + lbeta
