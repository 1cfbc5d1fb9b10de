"""What distributions that lie evenly around a parameter share."""

from __future__ import annotations

from typing import Any

from . import constraints
from .distribution import Distribution
from .utils import read


class AroundLoc:
    """A distribution whose mean is its most probable event: `loc`."""

    loc: Any
    mean = read("loc", "the mean")
    mode = read("loc", "the most probable event")


class LocScale(AroundLoc, Distribution):
    """A distribution of all real numbers, moved by `loc` and stretched by `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    scale: Any
