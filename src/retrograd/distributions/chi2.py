"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of the sum of `df` squared normal numbers."""

    arg_constraints = {"df": constraints.positive}
    _expands = Gamma._expands

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """Return the degrees of freedom."""
        return self.concentration * 2
