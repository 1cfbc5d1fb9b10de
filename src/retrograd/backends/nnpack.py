"""torch.backends.nnpack: kernels that torch once used. They are not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def is_available() -> bool:
    """Tell whether they are there."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Accept the switch, and return that it was off."""
    return (False,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Accept the switch for a block."""
    yield


__all__ = ["flags", "is_available", "set_flags"]
