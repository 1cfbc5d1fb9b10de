"""Warnings that torch gives once in a process."""

from __future__ import annotations

import warnings

_given: set[str] = set()


def warn_once(text: str, stacklevel: int = 4) -> None:
    """Warn, unless the same was said before."""
    if text not in _given:
        _given.add(text)
        warnings.warn(text, stacklevel=stacklevel)
