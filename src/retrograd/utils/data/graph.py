"""torch.utils.data.graph: which pipes a pipe is made of."""

from __future__ import annotations

from typing import Any

DataPipeGraph = dict[int, tuple[Any, Any]]


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """Return, by a pipe's number, the pipe and the same of what it is made of."""
    return _traversed(datapipe, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """`traverse_dps` under its older name."""
    return traverse_dps(datapipe)


def _is_pipe(value: Any) -> bool:
    from .datapipes.datapipe import IterDataPipe, MapDataPipe  # whose package imports this module

    return isinstance(value, (IterDataPipe, MapDataPipe))


def _traversed(datapipe: Any, seen: set[int]) -> DataPipeGraph:
    if not _is_pipe(datapipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in seen:
        return {}
    seen = {*seen, id(datapipe)}
    below: DataPipeGraph = {}
    for one in _parts(vars(datapipe)):
        below.update(_traversed(one, seen))
    return {id(datapipe): (datapipe, below)}


def _parts(value: Any) -> list[Any]:
    """Return the pipes in what a pipe holds."""
    if _is_pipe(value):
        return [value]
    if isinstance(value, dict):
        return [one for each in value.values() for one in _parts(each)]
    if isinstance(value, (list, tuple)):
        return [one for each in value for one in _parts(each)]
    return _parts(vars(value)) if type(value).__name__ == "_Source" else []


__all__ = ["traverse", "traverse_dps"]
