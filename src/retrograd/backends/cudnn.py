"""torch.backends.cudnn: switches that programs set. Here they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..cuda import is_available as is_available

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True


def version() -> int | None:
    """Return the version of cuDNN: it is not used."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Tell whether cuDNN would compute with a tensor: it is not used."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    **others: Any,
) -> Iterator[None]:
    """Set the switches for a block."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = {name: globals()[name] for name in names}
    globals().update(zip(names, (enabled, benchmark, benchmark_limit, deterministic, allow_tf32), strict=True))
    try:
        yield
    finally:
        globals().update(before)


__path__: list[str] = []  # torch has an empty `rnn` below
