"""torch.backends.mps: Apple's devices, which are not used."""

from __future__ import annotations

from .._absent import finder


def is_available() -> bool:
    """Tell whether there is such a device: it is not used.

    Example:
        >>> torch.backends.mps.is_available()  # False, unless torch runs on a Mac
        False
    """
    return False


is_built = is_available

__getattr__ = finder("torch.backends.mps")

__all__ = ["is_available", "is_built"]
