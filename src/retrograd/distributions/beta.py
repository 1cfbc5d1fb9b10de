"""The beta distribution."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all, is_number

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """A beta distribution: the first coordinate of a Dirichlet distribution of two.

    Args:
        concentration1: alpha
        concentration0: beta
        validate_args: whether parameters and values are checked

    Example:
        >>> torch.distributions.Beta(torch.tensor(1.0), torch.tensor(3.0)).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands = ()

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        if is_number(concentration1) and is_number(concentration0):
            both = rg.tensor([float(concentration1), float(concentration0)])
        else:
            both = rg.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Any:
        """Return the first concentration."""
        return self._first_or_second(0)

    @property
    def concentration0(self) -> Any:
        """Return the second concentration."""
        return self._first_or_second(1)

    def _first_or_second(self, k: int) -> Any:
        return self._dirichlet.concentration[..., k]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        self._check_event(value)
        return self._dirichlet.log_prob(rg.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> Any:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rg.lgamma(x) + rg.lgamma(y) - rg.lgamma(x + y)
