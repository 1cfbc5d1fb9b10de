"""Writing one checkpoint by several processes that have the same state: one writes, all learn what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._groups import ProcessGroup, is_initialized, need_group
from .._objects import all_gather_object, broadcast_object_list
from .api import CheckpointException
from .metadata import Metadata


def several(group: Any, no_dist: bool) -> ProcessGroup | None:
    """Return the group that writes together, or None for a process on its own."""
    if no_dist or not is_initialized() or need_group(group).size() == 1:
        return None
    return need_group(group)


def written_by_first(group: ProcessGroup, values: dict[str, Any], write: Callable[[], Metadata]) -> Metadata:
    """Let the first process write; return, or raise in all, what came of it. Values that differ in shape by process are refused."""
    shapes = {name: tuple(getattr(value, "shape", ())) for name, value in values.items()}
    of_all: list[Any] = [None] * group.size()
    all_gather_object(of_all, shapes, group)
    for rank, theirs in enumerate(of_all):
        other = next((name for name in {**shapes, **theirs} if shapes.get(name) != theirs.get(name)), None)
        if other is not None:
            raise NotImplementedError(
                f"a checkpoint of several processes whose states differ: {other!r} on rank {rank} and rank {group.rank()}\n"
                "Hint: collect the state on one process, or let each save its own with no_dist=True."
            )
    result: list[Any] = [None, None]
    if group.rank() == 0:
        try:
            result[0] = write()
        except Exception as error:
            result[1] = error
    broadcast_object_list(result, group=group, group_src=0)
    if result[1] is not None:
        raise CheckpointException("save", {0: result[1]})
    metadata: Metadata = result[0]
    return metadata
