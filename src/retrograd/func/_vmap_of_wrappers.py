"""vmap of tensors that wrap others: sample by sample, as their class computes.

A batch is an array, and a wrapper has none. So the function runs once for each sample, and the results are stacked; the class sees
the operations on each.
"""

from __future__ import annotations

from typing import Any

from .._modes import using
from ..tensor._functions.generators import get_rng_state, set_rng_state
from ..tensor._functions.joining import stack
from ..tensor._functions.random_tensors import REFUSED
from ..tensor._tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten


def map_samples(
    func: Any, name: str, flat: Any, spec: Any, dims: Any, out_dims: Any, randomness: str, size: int, kwargs: Any
) -> Any:
    """Run a function on each sample, and stack what it returns."""
    if not size:
        raise NotImplementedError(f"vmap({name}, ...) of a tensor that wraps others, without samples")
    before = _random_state()
    rows: list[Any] = []
    out_spec: Any = None
    for at in range(size):
        if randomness == "same":
            _set_random_state(before)
        sample = [one if dim is None else one.select(dim, at) for one, dim in zip(flat, dims, strict=True)]
        outputs, out_spec = tree_flatten(func(*tree_unflatten(sample, spec), **kwargs))
        if not all(isinstance(one, Tensor) for one in outputs):
            kind = next(type(one) for one in outputs if not isinstance(one, Tensor))
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {kind}. Did you mean to set out_dims= to "
                "None for output?"
            )
        rows.append(outputs)
    if randomness == "error" and _drew_since(before):
        _set_random_state(before)
        raise RuntimeError(REFUSED)
    dims_out: Any = _broadcast_to_and_flatten(out_dims, out_spec)
    if dims_out is None or None in dims_out:
        raise NotImplementedError(f"vmap({name}, ..., out_dims={out_dims}) of a tensor that wraps others")
    columns = zip(*rows, strict=True)
    return tree_unflatten([stack(column, dim) for column, dim in zip(columns, dims_out, strict=True)], out_spec)


def _random_state() -> Any:
    with using(dispatch_modes=()):  # modes may answer with tensors without numbers
        return get_rng_state()


def _drew_since(state: Any) -> bool:
    with using(dispatch_modes=()):
        return not bool((get_rng_state() == state).all())


def _set_random_state(state: Any) -> None:
    with using(dispatch_modes=()):
        set_rng_state(state)
