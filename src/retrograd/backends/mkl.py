"""torch.backends.mkl: Intel's library. NumPy may use it; programs cannot tell it here to print what it does."""

from __future__ import annotations

from typing import Self

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Tell whether torch was built with it: nothing was."""
    return False


class verbose:  # noqa: N801 - torch's name
    """A block in which the library would print what it does."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> Self:
        if self.enable == VERBOSE_OFF:
            return self
        raise RuntimeError("Failed to set MKL into verbose mode. Please consider to disable this verbose scope.")

    def __exit__(self, *exc: object) -> None:
        pass
