"""torch marks its functions by whether they may change; nobody here reads the marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compatibility(*, is_backward_compatible: bool) -> Callable[[Any], Any]:
    """Return what it decorates."""
    return lambda function: function
