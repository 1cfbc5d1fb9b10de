"""Guards on the Python state that a function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compile_guards(guards: list[Any]) -> Callable[[Any, Any, Any], bool]:
    """Return a function that tells whether all guards hold."""
    return lambda function, args, kwargs: not guards
