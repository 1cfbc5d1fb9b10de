"""torch._dynamo.utils: what torch's compiler counts, and what it can do. Nothing is compiled here."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """Let a block compile as often as it likes: it never does."""
    yield


def is_compile_supported(device_type: Any) -> bool:
    """Tell whether a kind of device has a compiler."""
    return False


@cache
def _warned(text: str) -> None:
    logging.getLogger("torch._dynamo").warning(text)


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Log a text the first time it is given."""
    _warned(msg)


__all__ = ["counters", "disable_cache_limit", "is_compile_supported", "warn_once"]
