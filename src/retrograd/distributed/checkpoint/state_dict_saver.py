"""torch.distributed.checkpoint.state_dict_saver: writing a state into a folder."""

from __future__ import annotations

import inspect
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..._public import set_all
from ..._warnings import warn
from .._groups import is_initialized
from ._nesting import given_states
from ._together import Together, background, group_of, guarded_call
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlan
from .staging import AsyncStager, _copied

NO_PLACE = "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
UNKNOWN_PLACE = (
    "Cannot detect which StorageReader or StorageWriter to use. Please specify the storage_reader/storage_writer."
)
ALONE = "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {} in a single process."


class AsyncCheckpointerType(Enum):
    """Where `async_save` writes: in a thread of this process, or in another process."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What `async_save` returns where the copy, too, is made in the background."""

    staging_completion: Future[None]
    upload_completion: Future[Metadata]


def storage_for(kind: Any, storage: Any, checkpoint_id: Any) -> Any:
    """Return what keeps a checkpoint: what is given, or a folder."""
    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError(NO_PLACE)
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(UNKNOWN_PLACE)
    return kind(checkpoint_id)


@guarded_call
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
    """Write a state into a folder: every process its part. It has the new checkpoint when this returns, and the one before until then."""
    if no_dist or not is_initialized():
        warn(ALONE.format("save"))
    writer = storage_for(FileSystemWriter, storage_writer, checkpoint_id)
    together = Together(group_of(process_group, no_dist))
    return _save_together(given_states(state_dict), writer, planner, together, use_collectives)


def _save_together(
    state: dict[str, Any], writer: Any, planner: Any, together: Together, use_collectives: bool = True
) -> Metadata:
    planner = DefaultSavePlanner() if planner is None else planner
    described: list[Metadata] = []

    def own_plan() -> SavePlan:
        if "storage_meta" in inspect.signature(planner.set_up_planner).parameters:
            planner.set_up_planner(
                state_dict=state, storage_meta=writer.storage_meta(), is_coordinator=together.is_coordinator
            )
        else:
            planner.set_up_planner(state, together.is_coordinator)
        takes_more = "kwargs" in inspect.signature(writer.set_up_storage_writer).parameters
        more = {"rank": together.rank, "use_collectives": use_collectives} if takes_more else {}
        writer.set_up_storage_writer(together.is_coordinator, **more)
        made: SavePlan = writer.prepare_local_plan(planner.create_local_plan())
        return made

    def plans_of_all(plans: list[SavePlan]) -> Any:
        plans, metadata = planner.create_global_plan(plans)
        described.append(metadata)
        return writer.prepare_global_plan(plans)

    def written() -> Any:
        future = writer.write_data(planner.finish_plan(plan), planner)
        future.wait()
        return future.value()

    def finished(results: list[Any]) -> Metadata:
        writer.finish(metadata=described[0], results=results)
        return described[0]

    if not use_collectives:  # each process writes a checkpoint of its own
        plan = plans_of_all([own_plan()])[0]
        metadata = finished([written()])
        together.all_gather("write", lambda: None)
        return metadata
    plan = together.reduce_scatter("plan", own_plan, plans_of_all)
    result: Metadata = together.all_reduce("write", written, finished)
    return result


@guarded_call
def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata] | AsyncSaveResponse:
    """Copy a state, and write the copy while the program goes on. Return a Future of what `save` returns.

    Checkpoints are written one after the other, in the order of the calls, which is the same in all processes.
    """
    if async_checkpointer_type is AsyncCheckpointerType.PROCESS:
        raise NotImplementedError(
            "async_save: async_checkpointer_type=AsyncCheckpointerType.PROCESS is not implemented\n"
            "Hint: leave it AsyncCheckpointerType.THREAD; files are written without holding Python's lock."
        )
    writer = storage_for(FileSystemWriter, storage_writer, checkpoint_id)
    stager = async_stager or (storage_writer if isinstance(storage_writer, AsyncStager) else None)
    state = given_states(state_dict)
    staged = _copied(state) if stager is None else stager.stage(state)
    group, threads = background(process_group, no_dist)
    together = Together(group)

    def write() -> Metadata:
        copy = staged.result() if isinstance(staged, Future) else staged
        return _save_together(copy, writer, planner, together, use_collectives)

    written = threads.submit(write)
    if group is not None:
        group.held_by.add(written)
        written.add_done_callback(group.held_by.discard)
    if not isinstance(staged, Future):
        if stager is not None and stager.should_synchronize_after_execute:
            stager.synchronize_staging()
        return written
    copied: Future[None] = Future()

    def tell(done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            copied.set_result(None)
        else:
            copied.set_exception(error)

    staged.add_done_callback(tell)
    return AsyncSaveResponse(copied, written)


@guarded_call
def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Metadata:
    """Write a state; the older name of `save`."""
    warn(
        "`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
        FutureWarning,
    )
    storage_writer.reset()
    together = Together(group_of(process_group, no_dist), coordinator_rank)
    return _save_together(state_dict, storage_writer, planner, together)


set_all(globals(), but="storage_for")
