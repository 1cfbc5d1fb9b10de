"""The questions that programs ask of kinds of devices that retrograd does not know: it has CPUs and CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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


def is_bf16_supported(*args: Any, **kwargs: Any) -> bool:
    """Tell whether such a device has bfloat16."""
    return False


def refusals(kind: str, names: str) -> dict[str, Callable[..., Any]]:
    """Make functions that need a device of a kind, and say so in torch's words."""

    def make(name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise AssertionError(f"Torch not compiled with {kind} enabled")

        refuse.__name__ = refuse.__qualname__ = name
        return refuse

    return {name: make(name) for name in names.split()}
