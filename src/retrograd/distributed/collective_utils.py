"""torch.distributed.collective_utils: values that one process computes for all; errors go to all, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class SyncPayload(Generic[T]):
    """What is sent: a value, or the error that came instead."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def _computed(data_or_fn: Any) -> Any:
    return data_or_fn() if callable(data_or_fn) else data_or_fn


def broadcast(
    data_or_fn: T | Callable[[], T],
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: Any = None,
) -> T:
    """Send a value, or what a function returns, to all processes."""
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    if not success:
        stage = "" if stage_name is None else f" {stage_name}"
        raise RuntimeError(f"Rank 0 failed: stage{stage}, exception None")
    return _computed(data_or_fn)  # type: ignore[no-any-return]


def all_gather(data_or_fn: T | Callable[[], T], stage_name: str | None = None, pg: Any = None) -> list[T]:
    """Gather a value, or what a function returns, of all processes."""
    return [_computed(data_or_fn)]


def all_gather_object_enforce_type(
    pg: Any, object_list: list[Any], obj: Any, type_checker: Any = lambda x, y: type(x) is type(y)
) -> None:
    """Gather an object of all processes, which must be of one type."""
    from ._collectives import all_gather_object

    all_gather_object(object_list, obj, pg)
    for number, one in enumerate(object_list):
        if not type_checker(object_list[0], one):
            raise TypeError(
                f"Object type at index {number} is {type(one)}, while first object type is {type(object_list[0])}"
            )


__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]
