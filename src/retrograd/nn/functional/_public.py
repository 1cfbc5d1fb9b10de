"""Which names of a file are those of nn.functional: the files' `__all__`."""

from __future__ import annotations

from typing import Any


def public_names(file: dict[str, Any], *more: str) -> list[str]:
    """Return the names of the public functions that a file defines, unless they say otherwise; and some more names."""
    return [*more, *[name for name, value in file.items() if name[0] != "_" and _is_public(value, file["__name__"])]]


def _is_public(value: Any, module: str) -> bool:
    own = getattr(value, "refuses", False) and value.__module__ == module
    return own and getattr(value, "in_functional", True)
