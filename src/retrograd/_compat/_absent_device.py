"""The questions that programs ask of kinds of devices that retrograd does not know: it has CPUs and CUDA."""

from __future__ import annotations


def is_available() -> bool:
    """Tell whether there is such a device."""
    return False


def device_count() -> int:
    """Return the number of such devices."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed no device."""


def empty_cache() -> None:
    """Give no memory back."""


def synchronize() -> None:
    """Wait for nothing."""
