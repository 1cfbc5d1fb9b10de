"""Saving and loading, and what files read with `weights_only` may name."""

from .tensor._loading import add_safe_globals, clear_safe_globals, get_safe_globals, load, safe_globals
from .tensor._saving import DEFAULT_PROTOCOL, save

__all__ = [
    "DEFAULT_PROTOCOL",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]
