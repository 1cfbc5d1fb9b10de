"""torch.backends.nnpack: kernels that torch once used. They are not there."""

from __future__ import annotations


def is_available() -> bool:
    """Tell whether they are there."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Accept the switch, and return that it was off."""
    return (False,)


__all__ = ["is_available", "set_flags"]
