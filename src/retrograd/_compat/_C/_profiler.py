"""torch._C._profiler: tracebacks that torch gathers quickly and writes out later."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = False) -> Any:
    """Return the frames that are running, the innermost first."""
    return list(reversed(traceback.extract_stack()[:-1])) if python else []


def symbolize_tracebacks(tracebacks: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """Write out tracebacks: a name, a file and a line for each frame."""
    return [
        [{"name": one.name, "filename": one.filename, "line": one.lineno} for one in frames] for frames in tracebacks
    ]


__all__ = ["gather_traceback", "symbolize_tracebacks"]
