"""torch.distributed.elastic.multiprocessing.errors: how a process tells torchrun that it failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


class ChildFailedError(Exception):
    """Some of the processes that were started failed."""

    def __init__(self, name: str, failures: dict[int, Any]) -> None:
        self.name, self.failures = name, failures
        super().__init__(f"{name} failed: {failures}")


def record(fn: Callable[..., T], error_handler: Any = None) -> Callable[..., T | None]:
    """Return the function of a process: one process has nobody to tell but its caller."""

    @wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> T | None:
        return fn(*args, **kwargs)

    return recorded


__all__ = ["ChildFailedError", "record"]
