"""torch.distributed.checkpoint.state_dict_loader: reading a state from a folder into the values that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...autograd.grad_mode import no_grad
from ...tensor import Tensor
from ._nesting import flattened, given_states, put
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .stateful import Stateful


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read what a state asks for: its tensors are written in place, other values replaced, objects told to load."""
    if storage_reader is None and checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specificed if storage_reader/storage_writer is None.")
    reader = FileSystemReader(checkpoint_id) if storage_reader is None else storage_reader
    reader.reset(checkpoint_id)
    wanted = given_states(state_dict)
    _load_state_dict(wanted, reader, planner=planner)
    for name, value in state_dict.items():
        if isinstance(value, Stateful) and not isinstance(value, Mapping):
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
    """Read what a state asks for, or all there is if the planner says so."""
    if not isinstance(storage_reader, FileSystemReader):
        raise NotImplementedError(f"a checkpoint read by {type(storage_reader).__name__}: retrograd reads folders")
    if planner is not None and not isinstance(planner, DefaultLoadPlanner):
        raise NotImplementedError(
            f"a checkpoint planned by {type(planner).__name__}: retrograd follows DefaultLoadPlanner"
        )
    try:
        _read(state_dict, storage_reader, planner or DefaultLoadPlanner())
    except Exception as error:
        raise CheckpointException("load", {0: error}) from error


def _read(state: dict[str, Any], reader: FileSystemReader, planner: DefaultLoadPlanner) -> None:
    metadata = reader.read_metadata()
    known = metadata.state_dict_metadata
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        for name in known:
            place = (metadata.planner_data or {}).get(name, (name,))
            if planner.wants(name, place):
                put(state, place, reader.read(metadata, name))
        return
    values, places = flattened(state) if planner.flatten_state_dict else (state, {})
    for name, value in values.items():  # all of it is checked before anything is written
        if name not in known:
            if planner.allow_partial_load:
                continue
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        size = getattr(known[name], "size", None)
        if isinstance(value, Tensor) and size is not None and size != value.shape:
            raise ValueError(f"Size mismatch between saved {size} and current: {value.shape} for {name}")
    read = {name: reader.read(metadata, name) for name in values if name in known}
    with no_grad():
        for name, found in read.items():
            if isinstance(values[name], Tensor):
                values[name].copy_(found)
            else:
                put(state, places.get(name, (name,)), found)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """Read a state; the older name of `load`."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, planner=planner)


__all__ = ["load", "load_state_dict"]
