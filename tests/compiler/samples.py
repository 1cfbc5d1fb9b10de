"""How much of what eager's tests run is run under compile, too: samples in CI, all of it by a command.

`RETROGRAD_COMPILE_ALL=1 python -m pytest tests/compiler` tries every composition of transforms, every input of every module, every example.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
ALL = os.environ.get("RETROGRAD_COMPILE_ALL") == "1"


def some(things: Sequence[T], every: int) -> Sequence[T]:
    """Return one of so many."""
    return things if ALL else things[::every]
