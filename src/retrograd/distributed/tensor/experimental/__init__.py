"""torch.distributed.tensor.experimental: plain tensors beside distributed ones, and functions of local parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...._absent import finder
from .. import _propagation
from .._dtensor import DTensor

__getattr__ = finder("torch.distributed.tensor.experimental")


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Let plain tensors stand beside distributed ones: each process has them whole."""
    before, _propagation.replicates_others[0] = _propagation.replicates_others[0], True
    try:
        yield
    finally:
        _propagation.replicates_others[0] = before


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: Any = None,
    *,
    redistribute_inputs: bool = False,
) -> Any:
    """Return a function of distributed tensors that runs another on each process's parts."""
    if func is None:
        return lambda given: local_map(given, out_placements, in_placements, in_grad_placements, device_mesh)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        mesh = device_mesh or next((one.device_mesh for one in args if isinstance(one, DTensor)), None)
        result = func(*(one.to_local() if isinstance(one, DTensor) else one for one in args), **kwargs)
        if mesh is None:
            return result
        several = isinstance(result, (tuple, list))
        results = list(result) if several else [result]
        places = list(out_placements) if several or isinstance(out_placements, tuple) else [out_placements]
        made = [
            one if place is None else DTensor.from_local(one, mesh, place)
            for one, place in zip(results, places, strict=True)
        ]
        return type(result)(made) if several else made[0]

    return mapped


__all__ = ["implicit_replication", "local_map"]
