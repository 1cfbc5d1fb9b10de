"""Warnings, at the line of the program that called this package, however many calls of ours lie between.

Python's default filter shows a warning once for each line it is placed at: placed in the package, it would be shown
once for the whole program.
"""

from __future__ import annotations

import sys
import warnings

from ._places import user_frame

REAL_PART_ONLY = "Casting complex values to real discards the imaginary part"
LIST_OF_ARRAYS = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
    "numpy.ndarray with numpy.array() before converting to a tensor."
)

always = False  # whether what is said once in a process is said each time
_said: set[str] = set()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called this package."""
    frame = user_frame(sys._getframe(1))
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def warn_once(message: str) -> None:
    """Warn, unless this process has given the same warning before."""
    if always or message not in _said:
        _said.add(message)
        warn(message)
