"""Warnings that torch gives, once in a process or at a line of the program."""

from __future__ import annotations

import sys
import warnings

from .._places import user_frame

_given: set[str] = set()


def warn_once(text: str, stacklevel: int | None = 4) -> None:
    """Warn, unless the same was said before; without a level, at the line of the program that called this package."""
    if text in _given:
        return
    _given.add(text)
    if stacklevel is None:
        warn_at_call(text)
    else:
        warnings.warn(text, stacklevel=stacklevel)


def warn_at_call(text: str) -> None:
    """Warn at the line of the program that called this package, however many calls of ours lie between."""
    frame = user_frame(sys._getframe(1))
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__", "<string>")
    warnings.warn_explicit(text, UserWarning, frame.f_code.co_filename, frame.f_lineno, name, registry)
