"""What distributions of one probability share: it may be given as such or as log-odds, and the other is made of it."""

from __future__ import annotations

from typing import Any

from .utils import broadcast_all, given_parameter, lazy_property, logits_to_probs, probs_to_logits, the_given


class Odds:
    """Probabilities and log-odds."""

    def _take(self, probs: Any, logits: Any) -> None:
        """Keep the parameter that is given."""
        name, given = the_given(probs, logits)
        (value,) = broadcast_all(given)
        setattr(self, name, value)

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

    total_count: Any

    def _take_with_count(self, total_count: Any, probs: Any, logits: Any) -> None:
        """Keep the parameter that is given beside a number of trials."""
        name, given = the_given(probs, logits)
        count, value = broadcast_all(total_count, given)
        setattr(self, name, value)
        self.total_count = count.type_as(value)

    @property
    def _param(self) -> Any:
        return given_parameter(self)

    @property
    def param_shape(self) -> Any:
        """Return the shape of the parameter."""
        return self._param.size()
