"""What distributions that lie evenly around a parameter share."""

from __future__ import annotations

from typing import Any

from . import constraints
from .distribution import Distribution


class AroundLoc:
    """A distribution whose mean is its most probable event: `loc`."""

    loc: Any

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        """Return the most probable event."""
        return self.loc


class LocScale(AroundLoc, Distribution):
    """A distribution of all real numbers, moved by `loc` and stretched by `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    scale: Any
