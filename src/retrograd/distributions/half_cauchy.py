"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as rg

from .cauchy import Cauchy
from .half_normal import Half
from .utils import read

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of the absolute value of a Cauchy number around 0."""

    _expands = ()
    variance = read("base_dist.variance")

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Any:
        return rg.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    def _log_density(self, value: Any) -> Any:
        return super()._log_density(rg.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
