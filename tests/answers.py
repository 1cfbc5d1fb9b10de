"""What a one-line program answers in a library: its value, or the error it raises."""

from __future__ import annotations

import warnings
from typing import Any


def answer(library: Any, program: str, **scope: Any) -> str:
    """Evaluate a program in which `torch` is the library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(program, {"torch": library, **scope}))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
