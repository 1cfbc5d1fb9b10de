"""What distributions of one probability share: it may be given as such or as log-odds, and the other is made of it."""

from __future__ import annotations

from typing import Any

from .utils import given_parameter, lazy_property, logits_to_probs, probs_to_logits


class Odds:
    """Probabilities and log-odds."""

    @lazy_property
    def logits(self) -> Any:
        """Return log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Return probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class OddsParameter(Odds):
    """Probabilities and log-odds, and which of them was given."""

    @property
    def _param(self) -> Any:
        return given_parameter(self)

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return self._param.size()
