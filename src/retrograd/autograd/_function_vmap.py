"""Custom Functions on a batch of vmap: their own `vmap`. See Note [A Function inside a level]."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core.arrays import levels_of
from .._core.primitive import vocabulary
from .._modes import current_mode, using
from ..tensor._aliasing.entering import entered
from ..tensor._base import wrap
from ..tensor._tensor import Tensor
from ._function_run import join, new_node

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's `vmap` gets to know."""

    batch_size: int
    randomness: str


def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
    """Compute for a whole batch."""
    raise NotImplementedError(
        "To use autograd.Function with vmap, you must either override the vmap static method or set "
        "generate_vmap_rule=True."
    )


def has_own_rule(cls: Any) -> bool:
    """Tell whether a batch goes to the Function's `vmap` rather than through its other methods."""
    return cls.vmap is not vmap or not cls.generate_vmap_rule


class _Batches(NamedTuple):
    """How gradients come to the outputs of a Function's `vmap`: the level, and the dimension of each output's batch."""

    level: Any
    dims: list[Any]

    def gradients(self, parts: Any) -> list[Any]:
        return [
            part if part is None or dim is None else vocabulary.leave_batch(part, level=self.level, axis=dim)
            for part, dim in zip(parts, self.dims, strict=True)
        ]


def run_batched(cls: Any, level: Any, args: tuple[Any, ...], ctx_wanted: bool) -> tuple[Any, Any]:
    """Hand a whole batch to the Function's own vmap. Returns the output and ctx."""
    mode = current_mode()
    node = new_node(cls, args, mode)
    unwrapped, output, out_dims = _by_own_rule(cls, level, args)
    outs = output if isinstance(output, tuple) else (output,)
    dims = [_settled(o, d) for o, d in zip(outs, _dims(output, out_dims), strict=True)]
    given = {id(one): arg for one, arg in zip(unwrapped, args, strict=True) if isinstance(one, Tensor)}
    with using(grad=False):
        raw = tuple(
            [given[id(o)] if id(o) in given else _entered(o, dim, level) for o, dim in zip(outs, dims, strict=True)]
        )
    tracked = mode.grad and any(isinstance(t, Tensor) and t._edge is not None for t in (*args, *outs))
    if tracked or ctx_wanted:
        with using(grad=False, saved_hooks=()):
            cls.setup_context(node, args, raw if isinstance(output, tuple) else raw[0])
        raw = join(node, _Batches(level, dims), args, raw, outs, tracked, mode)
    return raw if isinstance(output, tuple) else raw[0], node


def _by_own_rule(cls: Any, level: Any, args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Call the Function's vmap: what it was given, and the two things that it returns."""
    from ..utils._pytree import tree_map

    if cls.vmap is vmap:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True. {MORE}"
        )
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {MORE}"
        )

    def unwrap(arg: Any) -> Any:
        dim = in_dim(arg)
        return arg if dim is None else vocabulary.leave_batch(arg, level=level, axis=dim)

    def in_dim(arg: Any) -> Any:
        if not isinstance(arg, Tensor) or level not in levels_of(arg._array):
            return None
        link = entered(arg)  # what has entered has its batch where it had it
        return link.leaving[1]["axis"] if link is not None and link.level is level and link.leaving is not None else 0

    unwrapped = tuple(tree_map(unwrap, arg) for arg in args)
    in_dims = tuple(tree_map(in_dim, arg) for arg in args)
    returned = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *unwrapped)
    if not isinstance(returned, tuple) or len(returned) != 2:
        got = f"{len(returned)} returns" if isinstance(returned, tuple) else f"a {type(returned)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    return unwrapped, *returned


def _dims(output: Any, out_dims: Any) -> list[Any]:
    """Return a dimension, or None, for each output of a Function's vmap."""
    from ..utils._pytree import _broadcast_to_and_flatten, tree_structure

    if not isinstance(output, tuple) and isinstance(out_dims, int | None):
        return [out_dims]
    dims = _broadcast_to_and_flatten(out_dims, tree_structure(output))
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_structure(out_dims)} but output has structure {tree_structure(output)}. {MORE}"
        )
    return dims


def _settled(out: Any, dim: Any) -> Any:
    """Count an output's dimension from the left; None where it has no batch."""
    if dim is None or not isinstance(out, Tensor):
        return None
    ndim = out._array.ndim
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _entered(out: Any, dim: Any, level: Any) -> Any:
    """Return a new tensor outside the graph, inside the level if it has a batch."""
    if not isinstance(out, Tensor):
        return out
    return wrap(out._array) if dim is None else vocabulary.enter_batch(out, level=level, axis=dim)
