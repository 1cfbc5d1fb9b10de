"""torch.distributed.checkpoint.state_dict_saver: writing a state into a folder."""

from __future__ import annotations

from typing import Any

from ...futures import Future
from ._nesting import flattened, given_states
from ._together import several, written_by_first
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state into a folder, which is complete when this returns, or as it was."""
    if storage_writer is None and checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specificed if storage_reader/storage_writer is None.")
    writer = FileSystemWriter(checkpoint_id) if storage_writer is None else storage_writer
    if not isinstance(writer, FileSystemWriter):
        raise NotImplementedError(f"a checkpoint written by {type(writer).__name__}: retrograd writes folders")
    if planner is not None and type(planner) is not DefaultSavePlanner:
        raise NotImplementedError(
            f"a checkpoint planned by {type(planner).__name__}: retrograd follows DefaultSavePlanner"
        )
    writer.reset(checkpoint_id)
    values = given_states(state_dict)
    values, places = (values, {}) if planner is not None and not planner.flatten_state_dict else flattened(values)
    group = several(process_group, no_dist)
    if group is None:
        return writer.write(values, places)
    return written_by_first(group, values, lambda: writer.write(values, places))


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    **others: Any,
) -> Any:
    """Write a state and return a future, which is done: nothing changes the values while they are written."""
    future: Any = Future()
    written = save(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_writer=storage_writer,
        planner=planner,
        process_group=process_group,
        no_dist=others.get("no_dist", False),
    )
    future.set_result(written)
    return future


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Metadata:
    """Write a state; the older name of `save`."""
    return save(
        state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist
    )


__all__ = ["async_save", "save", "save_state_dict"]
