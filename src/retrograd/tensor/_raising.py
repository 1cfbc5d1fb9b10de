"""Raising a tensor to the levels of a value written into it. See Note [Views and in-place]."""

from __future__ import annotations

from typing import Any

from .._core import primitive as core
from .._core.arrays import Batched, Dual, LevelArray, levels_of
from .._core.levels import BATCH, creation_numbers
from .._core.primitive import vocabulary
from .._graph.node import InputFacts, Meta, Node
from .._modes import current_mode
from ._base import edge_of, materialise
from ._views import own_memory, replay


def promote(tensor: Any, missing: frozenset[Any]) -> None:
    """Give the base the levels of a value written into it; its views replay."""
    view = None if tensor._extra is None else tensor._extra.view
    base = tensor if view is None else view.base
    for transform in current_mode().transforms:
        if (
            transform.level in missing
            and transform.kind == BATCH
            and (base._extra is None or base._extra.born < transform.born)
        ):
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                "arithmetic. If said operator is being called inside the PyTorch framework, please file a bug report "
                "instead."
            )
    if view is not None and base._edge is not None:
        _lower(base, missing)
    array = materialise(base)
    for level in sorted(missing, key=lambda one: one.number):
        array = _with_batch(array, level) if level.kind == BATCH else _with_tangent(array, level)
    base._array = array
    storage = base._storage
    for one in [] if storage is None or storage.views is None else storage.views:
        other = one()
        if other is not None:
            other._array = replay(array, other._extra.view.steps)
    if view is not None:
        tensor._array = replay(array, view.steps)


class Lowered(Node):
    """Stands before the node of a base that got levels by a write into one of its views: gradients leave them here."""

    __slots__ = ()

    def pull_back(self, g: Any, graph: bool) -> Any:
        return (g,)


def _lower(base: Any, missing: frozenset[Any]) -> None:
    node = Lowered()
    levels = levels_of(base._array)
    node._edges = (edge_of(base),)
    node.meta = Meta((InputFacts(tuple(base._array.shape), base._array.dtype, levels),), levels | missing, False)
    node.seq = creation_numbers()
    node.code, node.lasti = None, 0
    node.guard = node.extra = node._storage = None
    base._edge = node


def _with_batch(array: Any, level: Any) -> Any:
    """Give every part of an array a batch axis of its own memory."""
    if not isinstance(array, LevelArray) or array.level.number < level.number:
        return Batched(level, own_memory(core.front(array, False, level.size)))
    if array.level is level:
        return array
    if isinstance(array, Batched):
        return Batched(array.level, _with_batch(array.array, level))
    tangent = None if array.tangent is None else _with_batch(array.tangent, level)  # type: ignore[attr-defined]
    return Dual(array.level, _with_batch(array.primal, level), tangent)  # type: ignore[attr-defined]


def _with_tangent(array: Any, level: Any) -> Any:
    """Give an array a tangent of its own memory at a dual level."""
    if not isinstance(array, LevelArray) or array.level.number < level.number:
        return Dual(level, array, own_memory(vocabulary.zeros_like(array)))
    if array.level is level:
        if array.tangent is None:  # type: ignore[attr-defined]
            return Dual(level, array.primal, own_memory(vocabulary.zeros_like(array.primal)))  # type: ignore[attr-defined]
        return array
    if isinstance(array, Batched):
        return Batched(array.level, _with_tangent(array.array, level))
    tangent = None if array.tangent is None else _with_tangent(array.tangent, level)  # type: ignore[attr-defined]
    return Dual(array.level, _with_tangent(array.primal, level), tangent)  # type: ignore[attr-defined]
