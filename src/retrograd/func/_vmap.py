"""vmap: run a function on every sample of a batch at once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .._core.arrays import Batched, levels_of
from .._core.levels import BATCH, Level, running
from .._core.primitive import vocabulary
from .._modes import current_mode
from .._progress import steps
from .._tracebacks import hide
from ..overrides import refuse_other_torch
from ..tensor._aliasing.entering import enter, entered, is_wrapper, refuse_wrapper
from ..tensor._aliasing.sample_views import Leaving
from ..tensor._base import dispatch_types, signed_types, stored
from ..tensor._functions.generators import get_rng_state, set_rng_state
from ..tensor._functions.joining import cat
from ..tensor._tensor import Tensor
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten

STEPS = "retrograd._functorch.vmap"  # where libraries replace the steps of vmap; most programs never load it


def _name(func: Any) -> str:
    if isinstance(func, str):
        return func
    return func.__name__ if hasattr(func, "__name__") else repr(func)  # which takes 10 us


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    _allow_none: bool = False,
    _kind: str = "vmap",
) -> Callable[..., Any]:
    """Return a function that maps `func` over dimensions of its inputs.

    Args:
        func: a function of single samples
        in_dims: the dimension of each input that is mapped over; None for one that all samples share
        out_dims: where that dimension is in the results
        randomness: "error", "different" or "same" random numbers in all samples
        chunk_size: how many samples are computed at once; all if it is not given

    Example:
        >>> dots = torch.func.vmap(torch.dot)
        >>> dots(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 1], [2, 2]]))
        tensor([ 3, 14])
        >>> torch.func.vmap(torch.func.grad(lambda w, x: (w * x) ** 2), in_dims=(None, 0))(torch.tensor(2.0), torch.arange(3.0))
        tensor([ 0.,  4., 16.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            if type(out_dims) is not int:
                _check_out_dims(func, out_dims)
            steps = sys.modules.get(STEPS)
            if steps is not None and chunk_size is None and not _allow_none and steps.are_replaced():
                return steps.run_steps(func, in_dims, out_dims, randomness, args, kwargs)
            flat, spec, dims, size = _read_inputs(func, in_dims, args)
            if dispatch_types and any(map(is_wrapper, flat)):
                from ._vmap_of_wrappers import map_samples

                return map_samples(func, _name(func), flat, spec, dims, out_dims, randomness, size, kwargs)
            if chunk_size is not None:
                return _chunked(func, flat, spec, dims, out_dims, randomness, size, chunk_size, kwargs, _allow_none)
            return _mapped(func, flat, spec, dims, out_dims, randomness, size, kwargs, _allow_none, _kind)
        except Exception as error:
            hide(error)
            raise

    return wrapped


def _check_out_dims(func: Any, out_dims: Any) -> None:
    if not all(dim is None or isinstance(dim, int) for dim in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )


def _read_inputs(func: Any, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], TreeSpec, list[Any], int]:
    """Flatten the inputs and find the dimension of each and the size of the batch."""
    what = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{what}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (arg, dim) in enumerate(zip(flat, dims, strict=True)):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if isinstance(dim, int) and not isinstance(arg, Tensor):
            refuse_other_torch((arg,))
            raise ValueError(
                f"{what}: Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is None:
            continue
        ndim = arg._array.ndim
        if dim < -ndim or dim >= ndim:
            raise ValueError(
                f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so "
                f"expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims[i] = dim % ndim
        sizes.append(arg._array.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return flat, spec, dims, sizes[0]


def _mapped(
    func: Any,
    flat: Any,
    spec: Any,
    dims: Any,
    out_dims: Any,
    randomness: str,
    size: int,
    kwargs: Any,
    allow_none: bool,
    kind: str = "vmap",
) -> Any:
    level = Level(BATCH, size, randomness)
    with running(kind, level):
        inside = [arg if dim is None else _enter(arg, level, dim) for arg, dim in zip(flat, dims, strict=True)]
        result = func(*tree_unflatten(inside, spec), **kwargs)
        return _left(func, result, out_dims, level, allow_none)


def _left(func: Any, result: Any, out_dims: Any, level: Level, allow_none: bool) -> Any:
    """Bring the results of a mapped function out of its level."""
    outputs, out_spec = tree_flatten(result)
    if isinstance(result, Tensor):
        dims_out: Any = [out_dims[0] if isinstance(out_dims, tuple) and len(out_dims) == 1 else out_dims]
        if not isinstance(dims_out[0], (int, type(None))):
            dims_out = None
    else:
        dims_out = _broadcast_to_and_flatten(out_dims, out_spec)
    if dims_out is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {out_spec}."
        )
    leaving = Leaving(level)
    left = [_leave(func, out, dim, leaving, allow_none) for out, dim in zip(outputs, dims_out, strict=True)]
    return tree_unflatten(left, out_spec)


def restore_vmap(func: Any, in_dims: Any, batch_size: int, randomness: str) -> Any:
    """Map a function, and return its results with the dimension of the batch in each: None where there is none."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        flat, spec = tree_flatten(args)
        dims: Any = _broadcast_to_and_flatten(in_dims, spec)
        level = Level(BATCH, batch_size, randomness)
        with running("vmap", level):
            inside = [arg if dim is None else _enter(arg, level, dim) for arg, dim in zip(flat, dims, strict=True)]
            outputs, out_spec = tree_flatten(func(*tree_unflatten(inside, spec), **kwargs))
            leaving = Leaving(level)
            left = [_leave_as_it_lies(out, level, leaving) for out in outputs]
        return tree_unflatten([one for one, _ in left], out_spec), tree_unflatten([dim for _, dim in left], out_spec)

    return inner


def _leave_as_it_lies(out: Any, level: Level, leaving: Leaving) -> tuple[Any, int | None]:
    if not isinstance(out, Tensor) or level not in levels_of(out._array):
        return out, None
    link = entered(out)
    dim: int = 0 if link is None or link.level is not level or link.leaving is None else link.leaving[1]["axis"]
    return leaving.leave(out, dim), dim


def _enter(arg: Any, level: Level, axis: int) -> Any:
    """Show a tensor as a batch; a write into it is one into the tensor."""
    if axis and current_mode().dispatch_modes:
        arg, axis = arg.movedim(axis, 0), 0  # by an operation that modes see
    refuse_wrapper(arg, "vmap over", "use vmap itself, not its steps.")
    inside = vocabulary.enter_batch(arg, level=level, axis=axis)
    if type(arg) in signed_types:
        from ..tensor._aliasing.signs import carry

        carry(arg, inside, vocabulary.enter_batch(stored(arg), level=level, axis=axis))
    return enter(inside, arg, (vocabulary.leave_batch, {"level": level, "axis": axis}))


def _leave(func: Any, out: Any, dim: Any, leaving: Leaving, allow_none: bool) -> Any:
    if out is None and allow_none:
        return None
    if dim is None:
        if isinstance(out, Tensor) and isinstance(out._array, Batched):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return out
    if not isinstance(out, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(out)}. Did you mean to "
            "set out_dims= to None for output?"
        )
    refuse_wrapper(
        out, f"vmap({_name(func)}, ...) returns", "give the function the wrapper as an argument (in_dims=None)."
    )
    ndim = out._array.ndim + 1
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    if dim % ndim and current_mode().dispatch_modes:
        return leaving.leave(out, 0).movedim(0, dim)
    return leaving.leave(out, dim % ndim)


def _chunked(
    func: Any,
    flat: Any,
    spec: Any,
    dims: Any,
    out_dims: Any,
    randomness: str,
    size: int,
    chunk: int,
    kwargs: Any,
    none: bool,
) -> Any:
    """Map in chunks, so that memory holds only one of them at a time."""
    parts, out_spec = [], None
    random = get_rng_state() if randomness == "same" else None
    for start in steps(range(0, max(size, 1), chunk), "vmap: chunks"):
        length = min(chunk, size - start)
        if random is not None:
            set_rng_state(random)
        piece = [arg if dim is None else arg.narrow(dim, start, length) for arg, dim in zip(flat, dims, strict=True)]
        result = _mapped(func, piece, spec, dims, out_dims, randomness, length, kwargs, none)
        leaves, out_spec = tree_flatten(result)
        parts.append(leaves)
    dims_out = _broadcast_to_and_flatten(out_dims, out_spec) if out_spec is not None else None
    if dims_out is None:
        dims_out = [out_dims[0] if isinstance(out_dims, tuple) else out_dims] * len(parts[0])
    if any(dim is None and part is not None for part, dim in zip(parts[0], dims_out, strict=True)):
        raise TypeError(
            "cat(): argument 'dim' must be int, not NoneType\n"
            "Hint: an output with out_dims=None is not joined over chunks; leave out chunk_size."
        )
    joined = [
        cat(column, dim) if column[0] is not None else None
        for column, dim in zip(zip(*parts, strict=True), dims_out, strict=True)
    ]
    return tree_unflatten(joined, out_spec)  # type: ignore[arg-type]
