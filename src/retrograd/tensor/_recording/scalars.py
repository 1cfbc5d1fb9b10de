"""Arithmetic with numbers as torch's own functions do it: their nodes have other names than those of `x * 2` in Python."""

from __future__ import annotations

from typing import Any

from ..._ops import elementwise as e
from .record import Elementwise

_TIMES = Elementwise(e.multiply, "mul", "MulBackward1", False)
_OVER = Elementwise(e.divide, "div", "DivBackward1", True)


def times(tensor: Any, number: Any) -> Any:
    """Multiply by a number."""
    return _TIMES.slow((tensor, number))


def over(tensor: Any, number: Any) -> Any:
    """Divide by a number."""
    return _OVER.slow((tensor, number))
