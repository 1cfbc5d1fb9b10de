"""torch._functorch.vmap: the steps of `vmap`, which libraries call, or replace by their own to map over objects that hold tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd._absent import finder
from retrograd._core.levels import BATCH, Level, running
from retrograd.func import vmap
from retrograd.func._vmap import _enter, _leave, _left, _read_inputs, restore_vmap
from retrograd.func._vmap import _name as _get_name
from retrograd.tensor._aliasing.sample_views import Leaving
from retrograd.utils._pytree import tree_unflatten


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Run a function once over batches."""
    return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


# ---- the steps; what torch calls the number of a level is the level itself here ----
def _process_batched_inputs(in_dims: Any, args: Any, func: Any) -> tuple[int, list[Any], list[Any], Any]:
    flat, spec, dims, size = _read_inputs(func, in_dims, args)
    return size, dims, flat, spec


def _add_batch_dim(tensor: Any, in_dim: int, vmap_level: Any) -> Any:
    return _enter(tensor, vmap_level, in_dim)


def _create_batched_inputs(flat_in_dims: Any, flat_args: Any, vmap_level: Any, args_spec: Any) -> Any:
    pairs = zip(flat_args, flat_in_dims, strict=True)
    return tree_unflatten([arg if dim is None else _enter(arg, vmap_level, dim) for arg, dim in pairs], args_spec)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: Any, batch_size: int, out_dim: Any) -> Any:
    return _leave(name, batched_output, out_dim, Leaving(vmap_level), False)


def _remove_batch_dim(tensor: Any, vmap_level: Any, batch_size: int, out_dim: int) -> Any:
    return Leaving(vmap_level).leave(tensor, out_dim)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: Any, batch_size: int, func: Any) -> Any:
    return _left(func, batched_outputs, out_dims, vmap_level, False)


_OWN = _process_batched_inputs, _create_batched_inputs, _unwrap_batched


def are_replaced() -> bool:
    """Tell whether a library has put steps of its own in place of these."""
    return (_process_batched_inputs, _create_batched_inputs, _unwrap_batched) != _OWN


def run_steps(func: Any, in_dims: Any, out_dims: Any, randomness: str, args: Any, kwargs: Any) -> Any:
    """Map a function by the steps that are in place."""
    size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
    level = Level(BATCH, size, randomness)
    with running("vmap", level):
        result = func(*_create_batched_inputs(dims, flat, level, spec), **kwargs)
        return _unwrap_batched(result, out_dims, level, size, func)


__getattr__ = finder("torch._functorch.vmap")

__all__ = ["_get_name", "restore_vmap", "vmap_impl"]
