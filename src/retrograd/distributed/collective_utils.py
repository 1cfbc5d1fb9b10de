"""torch.distributed.collective_utils: values that one process computes for all; errors go to all, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._groups import get_rank, get_world_size, is_initialized
from ._objects import all_gather_object, broadcast_object_list

T = TypeVar("T")


@dataclass
class SyncPayload(Generic[T]):
    """What is sent: a value, or the error that came instead."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def _computed(data_or_fn: Any, success: bool, stage_name: str | None) -> SyncPayload[Any]:
    if not callable(data_or_fn):
        return SyncPayload(stage_name, success, data_or_fn)
    try:
        return SyncPayload(stage_name, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(
    data_or_fn: T | Callable[[], T],
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: Any = None,
) -> T:
    """Send a value of one process, or what a function returns there, to all."""
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    several = is_initialized() and get_world_size(pg) > 1
    sent: list[Any] = [None]
    if not several or get_rank(pg) == rank:
        sent = [_computed(data_or_fn, success, stage_name)]
    if several:
        broadcast_object_list(sent, group=pg, group_src=rank)
    found = sent[0]
    if not found.success:
        stage = "" if stage_name is None else f" {stage_name}"
        raise RuntimeError(f"Rank {rank} failed: stage{stage}, exception {found.exception}") from found.exception
    return found.payload  # type: ignore[no-any-return]


def all_gather(data_or_fn: T | Callable[[], T], stage_name: str | None = None, pg: Any = None) -> list[T]:
    """Gather a value, or what a function returns, of all processes."""
    own = _computed(data_or_fn, True, stage_name)
    every: list[Any] = [own]
    if is_initialized() and get_world_size(pg) > 1:
        every = [None] * get_world_size(pg)
        all_gather_object(every, own, pg)
    errors = [(rank, one.exception) for rank, one in enumerate(every) if not one.success]
    if errors:
        raise RuntimeError(errors) from errors[0][1]
    return [one.payload for one in every]


def all_gather_object_enforce_type(
    pg: Any, object_list: list[Any], obj: Any, type_checker: Any = lambda x, y: type(x) is type(y)
) -> None:
    """Gather an object of all processes, which must be of one type."""
    all_gather_object(object_list, obj, pg)
    for number, one in enumerate(object_list):
        if not type_checker(object_list[0], one):
            raise TypeError(
                f"Object type at index {number} is {type(one)}, while first object type is {type(object_list[0])}"
            )


__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]
