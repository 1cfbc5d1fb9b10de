"""torch.distributed.checkpoint.state_dict_loader: reading a state from a folder into the values that are given."""

from __future__ import annotations

import inspect
from typing import Any

from ..._warnings import warn
from .._groups import is_initialized
from ._nesting import given_states
from ._together import Together, group_of, guarded_call
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlan
from .state_dict_saver import ALONE, storage_for
from .stateful import Stateful


@guarded_call
def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read what a state asks for: its tensors are written in place, other values replaced, objects told to load.

    Each process reads what its own parts need, however many processes wrote the checkpoint.
    """
    if no_dist or not is_initialized():
        warn(ALONE.format("load"))
    reader = storage_for(FileSystemReader, storage_reader, checkpoint_id)
    wanted = given_states(state_dict)
    _load_state_dict(wanted, reader, process_group, no_dist=no_dist, planner=planner)
    for name, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(wanted[name])
        else:
            state_dict[name] = wanted[name]


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """Read what a state asks for, or what the planner does."""
    together = Together(group_of(process_group, no_dist), coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner

    def own_plan() -> LoadPlan:
        metadata, is_common = _metadata_of(storage_reader, together.rank)
        planner.set_up_planner(state_dict, metadata, together.is_coordinator)
        takes_more = "kwargs" in inspect.signature(storage_reader.set_up_storage_reader).parameters
        more = {"rank": together.rank, "use_collectives": is_common} if takes_more else {}
        storage_reader.set_up_storage_reader(metadata, together.is_coordinator, **more)
        made: LoadPlan = storage_reader.prepare_local_plan(planner.create_local_plan())
        return made

    def plans_of_all(plans: list[LoadPlan]) -> Any:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    def read() -> None:
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()

    plan = together.reduce_scatter("plan", own_plan, plans_of_all)
    together.all_gather("read", read)


def _metadata_of(reader: Any, rank: int) -> tuple[Any, bool]:
    """Return what there is, and whether all processes wrote it together: otherwise each has a file of its own."""
    try:
        return reader.read_metadata(), True
    except FileNotFoundError as error:
        if "kwargs" not in inspect.signature(reader.read_metadata).parameters:
            raise
        try:
            return reader.read_metadata(rank=rank), False
        except FileNotFoundError as other:
            raise AssertionError(
                f"metadata is None; global metadata read failed: {error}; rank local metadata read failed: {other}\n"
                "Hint: there is no whole checkpoint in this folder."
            ) from None


@guarded_call
def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """Read all there is, or what has some names, into a new state."""
    reader = storage_for(FileSystemReader, storage_reader, checkpoint_id)
    state: dict[str, Any] = {}
    wanted = {keys} if isinstance(keys, str) else keys
    _load_state_dict(state, reader, process_group, planner=_EmptyStateDictLoadPlanner(wanted))
    return state


@guarded_call
def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """Read a state; the older name of `load`."""
    warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


__all__ = ["load", "load_state_dict"]
