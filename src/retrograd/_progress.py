"""Progress bars of loops that may take long, for those who ask for them: `debug.progress()`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, TypeVar

Thing = TypeVar("Thing")
DELAY_S = 1  # what is done sooner shows no bar

_bar: Any = None  # tqdm, while bars are asked for


def steps(things: Iterable[Thing], what: str, total: int | None = None) -> Iterable[Thing]:
    """Return what a loop goes through, with a bar if the user has asked for one. `what` says what it does."""
    return things if _bar is None else _bar(things, desc=what, total=total, delay=DELAY_S, leave=False)


def is_shown() -> bool:
    """Tell whether bars are shown."""
    return _bar is not None


def show(wanted: bool) -> None:
    """Show bars, or no longer."""
    global _bar
    _bar = _tqdm() if wanted else None


def _tqdm() -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):  # that a notebook has no widgets, and gets text
            from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress bars need tqdm: pip install tqdm") from None
    return tqdm
