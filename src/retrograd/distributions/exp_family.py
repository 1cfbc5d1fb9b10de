"""Exponential families."""

from __future__ import annotations

from typing import Any

import retrograd as rg

from .._modes import using
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution whose density is exp(statistics . natural parameters - log normaliser + carrier)."""

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _slopes(self) -> tuple[list[Any], Any, Any]:
        """Return the natural parameters, the log normaliser of them, and its slopes."""
        natural = [one.detach().requires_grad_() for one in self._natural_params]
        with using(grad=True):
            normalizer = self._log_normalizer(*natural)
            return natural, normalizer, rg.autograd.grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self) -> Any:
        """Return the entropy, of the slopes of the log normaliser."""
        natural, normalizer, slopes = self._slopes()
        result = -self._mean_carrier_measure + normalizer
        for parameter, slope in zip(natural, slopes, strict=True):
            result = result - _sum_rightmost(parameter * slope, len(self._event_shape))
        return result
