"""What processes do together for a checkpoint: each does its part, one brings the parts together, and all learn who failed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..._tracebacks import guarded
from .._collectives import run
from .._groups import ProcessGroup, is_initialized, need_group
from .._mpi import Mpi
from .._objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from .api import CheckpointException, _wrap_exception


class Together:
    """The processes that write or read one checkpoint; without a group it is this one."""

    def __init__(self, group: ProcessGroup | None, coordinator: int = 0) -> None:
        self.group = group
        self.rank = 0 if group is None else group.rank()
        self.size = 1 if group is None else group.size()
        self.coordinator = 0 if group is None else coordinator
        self.is_coordinator = self.rank == self.coordinator

    def reduce_scatter(
        self, step: str, do_part: Callable[[], Any], bring_together: Callable[[list[Any]], list[Any]]
    ) -> Any:
        """Do a part in each process; the first makes of all parts a result for each."""
        parts = self._gathered(_tried(do_part))
        results: list[Any] = [None] * self.size
        if self.is_coordinator:
            whole = self._brought_together(step, parts, bring_together)
            results = [whole] * self.size if isinstance(whole, CheckpointException) else whole
        if self.group is None:
            return _succeeded(results[0])
        mine: list[Any] = [None]
        given = results if self.is_coordinator else None
        scatter_object_list(mine, given, group=self.group, group_src=self.coordinator)
        return _succeeded(mine[0])

    def all_reduce(self, step: str, do_part: Callable[[], Any], bring_together: Callable[[list[Any]], Any]) -> Any:
        """Do a part in each process; the first makes of all parts one result for all."""
        parts = self._gathered(_tried(do_part))
        result = [self._brought_together(step, parts, bring_together) if self.is_coordinator else None]
        if self.group is not None:
            broadcast_object_list(result, group=self.group, group_src=self.coordinator)
        return _succeeded(result[0])

    def all_gather(self, step: str, do_part: Callable[[], Any]) -> list[Any]:
        """Do a part in each process, and give every one all of them."""
        parts: list[Any] = [_tried(do_part)] * self.size
        if self.group is not None:
            all_gather_object(parts, parts[0], self.group)
        _succeeded(_failure(step, parts))
        return parts

    def _gathered(self, part: Any) -> list[Any]:
        parts: list[Any] = [part] * self.size
        if self.group is not None:
            listed = parts if self.is_coordinator else None
            gather_object(part, listed, group=self.group, group_dst=self.coordinator)
        return parts

    def _brought_together(self, step: str, parts: list[Any], bring_together: Callable[[list[Any]], Any]) -> Any:
        failure = _failure(step, parts)
        if failure is not None:
            return failure
        result = _tried(lambda: bring_together(parts))
        return CheckpointException(step, {self.rank: result.wrapped}) if isinstance(result, _Failed) else result


class _Failed:
    """An error that a process met in its part."""

    def __init__(self, error: BaseException) -> None:
        self.wrapped = _wrap_exception(error)


def _tried(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except BaseException as error:
        return _Failed(error)


def _failure(step: str, parts: list[Any]) -> CheckpointException | None:
    failures = {rank: part.wrapped for rank, part in enumerate(parts) if isinstance(part, _Failed)}
    return CheckpointException(step, failures) if failures else None


def _succeeded(result: Any) -> Any:
    if isinstance(result, CheckpointException):
        raise result
    return result


Function = TypeVar("Function", bound=Callable[..., Any])


def guarded_call(function: Function) -> Function:
    """Make a public function hide the package's frames, also from the error that tells who failed. See Note [Tracebacks]."""
    return guarded(function, CheckpointException)


# ---- in the background ----
_threads: WeakKeyDictionary[Any, ThreadPoolExecutor] = WeakKeyDictionary()


class _ThisProcess:
    """Stands for the group where there is none."""


_alone = _ThisProcess()


def background(group: Any, no_dist: bool) -> tuple[ProcessGroup | None, ThreadPoolExecutor]:
    """Return what checkpoints are written with while the program goes on: the same processes on a channel of their own, and one thread.

    On the program's channel the order of collectives would depend on time (Note [The order of collectives]); one thread writes one
    checkpoint after the other, in all processes in the same order.
    """
    together = group_of(group, no_dist)
    group = None if together is None else _twin_of(together)
    key = group or _alone
    if key not in _threads:
        _threads[key] = ThreadPoolExecutor(1, f"checkpoints of process {os.getpid()}")
    return group, _threads[key]


def _twin_of(group: ProcessGroup) -> ProcessGroup:
    """Return a group of the same processes for another thread, on a channel of its own; it is made once."""
    if group.twin is None:
        made: list[Any] = []

        def issue() -> Any:
            communicator, request = group._engine.communicator.Idup()
            made.append(communicator)
            return request

        run(group, "async_save", issue, [], None, False)
        words = f"{group.group_desc}, in the background"
        group.twin = ProcessGroup(
            group._backend, group._config, group._ranks, group.group_name, words, group.timeout, Mpi(made[0])
        )
        group.twin.is_in_background = True
    return group.twin


def group_of(group: Any, no_dist: bool) -> ProcessGroup | None:
    """Return the group that works together, or None for a process on its own."""
    if no_dist or not is_initialized() or need_group(group).size() == 1:
        return None
    return need_group(group)
