"""torch.utils.data.graph_settings: orders, seeds and shares of all pipes that a pipe is made of."""

from __future__ import annotations

import inspect
from typing import Any

from ..._dtypes import int64
from ..._public import set_all
from ..._warnings import warn
from ...tensor import functions as _functions
from .graph import DataPipeGraph, traverse_dps


def get_all_graph_pipes(graph: DataPipeGraph) -> list[Any]:
    """Return the pipes of a graph, each once."""
    found: dict[int, Any] = {}

    def walk(part: DataPipeGraph) -> None:
        for number, (pipe, below) in part.items():
            if number not in found:
                found[number] = pipe
                walk(below)

    walk(graph)
    return list(found.values())


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = 1) -> Any:
    """Say how many share the streams, and which this one is."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(type(pipe), "apply_sharding"):
            count = len(inspect.signature(pipe.apply_sharding).parameters)
            extra = () if count < 3 else (sharding_group,)
            pipe.apply_sharding(num_of_instances, instance_id, *extra)
    return datapipe


def _shufflers(datapipe: Any) -> list[Any]:
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    return [one for one in pipes if hasattr(type(one), "set_shuffle") and hasattr(type(one), "set_seed")]


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch random orders on or off; a stream that has none gets one at its end."""
    if shuffle is None:
        return datapipe
    shufflers = _shufflers(datapipe)
    if not shufflers and shuffle:
        warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the "
            "default buffer size might not be sufficient for your task."
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for one in shufflers:
        one.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Draw a seed for each pipe whose order is random."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(type(pipe), "set_seed"):
            pipe.set_seed(int(_functions()["empty"]((), dtype=int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """`apply_random_seed` under its older name."""
    return apply_random_seed(datapipe, rng)


set_all(globals())
