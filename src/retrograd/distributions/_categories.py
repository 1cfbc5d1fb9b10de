"""What distributions share that draw categories and show them differently: the parameters of the categories."""

from __future__ import annotations

from typing import Any

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class OfCategories(Distribution):
    """A distribution of vectors with a number for each category."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def logits(self) -> Any:
        """Return logarithms of probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Return probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return self._categorical.param_shape
