"""Raising a tensor to the levels of a value written into it. See Note [Views and in-place]."""

from __future__ import annotations

from typing import Any

from ..._core import primitive as core
from ..._core.arrays import Batched, Dual, LevelArray, levels_of
from ..._core.levels import BATCH
from ..._core.primitive import vocabulary
from ..._graph.node import InputFacts, Meta, Node
from ..._modes import current_mode
from .._base import edge_of, materialise
from .._object.layout import laid_out_like
from .entering import entered, without_tangents
from .memory import covers, own_memory, zero_memory
from .view_nodes import show_again


def promote(tensor: Any, value: Any) -> None:
    """Give the base of a tensor room for every part of a value that will be written into it; its views replay."""
    view = None if tensor._extra is None else tensor._extra.view
    base = tensor if view is None else view.base
    _refuse_batches(base, value)
    if view is not None and base._edge is not None:
        _lower(base, levels_of(value))
    _replace_memory(base, _raised(_with_outer(base, value), value))
    if view is not None:
        show_again(tensor, base._array)


def _refuse_batches(base: Any, value: Any) -> None:
    """Raise torch's error for samples written into a tensor that is the same for all of them."""
    born = 0 if base._extra is None else base._extra.born
    batches = levels_of(without_tangents(value)) - levels_of(without_tangents(base._array))
    for transform in current_mode().transforms:
        if transform.kind == BATCH and transform.level in batches and born < transform.born:
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                "arithmetic."
            )


def _with_outer(base: Any, value: Any) -> Any:
    """Return the array of a base after the tensor that it shows has got room for what the outer transforms see of the value."""
    array, link = materialise(base), entered(base)
    if link is None or link.leaving is None or (link.level is not None and array.level is not link.level):
        return array
    known = {one.level for one in current_mode().transforms[: link.transforms]}
    seen = _seen_by(known, value)
    if covers(link.outer._array, seen):
        return array
    promote(link.outer, seen)
    if link.level is None:
        return link.outer._array
    if isinstance(array, Dual):
        return Dual(array.level, link.outer._array, array.tangent)
    return vocabulary.enter_batch(link.outer._array, **link.leaving[1])


def _seen_by(known: set[Any], value: Any) -> Any:
    """Return a value without the parts of levels that are not known: of the batches among those, all samples."""
    if isinstance(value, Dual):
        primal = _seen_by(known, value.primal)
        if value.level not in known:
            return primal
        return Dual(value.level, primal, None if value.tangent is None else _seen_by(known, value.tangent))
    if isinstance(value, Batched):
        inner = _seen_by(known, value.array)
        return Batched(value.level, inner) if value.level in known else inner
    return value


def _raised(array: Any, value: Any) -> Any:
    """Return an array that shows the same memory and has room for every part of a value."""
    if not isinstance(value, LevelArray):
        return array
    level = value.level
    if isinstance(array, LevelArray) and array.level.number > level.number:  # the value is a constant to it
        if isinstance(array, Batched):
            return Batched(array.level, _raised(array.array, value))
        tangent = None if array.tangent is None else _raised(array.tangent, value)  # type: ignore[attr-defined]
        return Dual(array.level, _raised(array.primal, value), tangent)  # type: ignore[attr-defined]
    mine = isinstance(array, LevelArray) and array.level is level
    if isinstance(value, Batched):
        inner = array.array if mine else own_memory(core.front(array, False, level.size))
        return Batched(level, _raised(inner, value.array))
    primal = _raised(array.primal if mine else array, value.primal)  # type: ignore[attr-defined]
    tangent = array.tangent if mine else None
    if value.tangent is not None:  # type: ignore[attr-defined]
        tangent = _raised(zero_memory(primal) if tangent is None else tangent, value.tangent)  # type: ignore[attr-defined]
    return Dual(level, primal, tangent)


def _replace_memory(base: Any, array: Any) -> None:
    """Let a base and its views show another array."""
    base._array = array
    storage = base._storage
    for one in () if storage is None or storage.views is None else storage.views:
        other = one()
        if other is not None and other._extra.view is not None and other._extra.view.base is base:
            show_again(other, array)


def align_tangents(tensor: Any) -> None:
    """Lay tangents out in memory as their primals are, as torch has them: then what is a view of one is one of the other."""
    view = None if tensor._extra is None else tensor._extra.view
    base = tensor if view is None else view.base
    _replace_memory(base, _aligned(base._array))
    if view is not None:
        show_again(tensor, base._array)


def _aligned(array: Any) -> Any:
    if isinstance(array, Batched):
        return Batched(array.level, _aligned(array.array))
    if not isinstance(array, Dual) or array.tangent is None:
        return array
    primal, tangent = _aligned(array.primal), _aligned(array.tangent)
    return Dual(array.level, primal, laid_out_like(tangent, primal))


class Lowered(Node):
    """Stands before the node of a base that got levels by a write into one of its views: gradients leave them here."""

    __slots__ = ()

    def pull_back(self, g: Any, graph: bool) -> Any:
        return (g,)


def _lower(base: Any, missing: frozenset[Any]) -> None:
    node = Lowered().begin((edge_of(base),), of_user=False)
    levels = levels_of(base._array)
    node.meta = Meta((InputFacts(tuple(base._array.shape), base._array.dtype, levels),), levels | missing, False)
    base._edge = node
