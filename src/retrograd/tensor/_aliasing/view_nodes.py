"""The nodes that writes make: of a base of which a view was written, and of views whose base was.

See Note [Views and in-place] in `_aliasing/views.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..._core import primitive as core
from ..._core.arrays import LevelArray, levels_of
from ..._core.primitive import Primitive, vocabulary
from ..._graph.node import InputFacts, Meta, Node
from ..._modes import current_mode
from ..._ops.levels import remove_level
from .._base import array_slot, edge_of, materialise, signed_types, storage_of, wrap
from .entering import share_birth, without_tangents

Step = tuple[Primitive, dict[str, Any]]


def replay(array: Any, steps: tuple[Step, ...]) -> Any:
    """Apply a view's steps to an array or a Tensor."""
    for primitive, params in steps:
        array = primitive(array, **params)
    return array


def stored_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of a view that find its memory: all but those that turn signs. See Note [Signs]."""
    kept = [(one, params) for one, params in steps if one.name not in ("conj", "negative")]
    return tuple(
        (one, params | {"steps": stored_steps(params["steps"])} if "steps" in params else params)
        for one, params in kept
    )


def show_again(tensor: Any, array: Any) -> None:
    """Let a view show its part of another array of its base."""
    array_slot.__set__(tensor, replay(array, stored_steps(tensor._extra.view.steps)))


def scatter_back(value: Any, steps: tuple[Step, ...], base_shape: tuple[int, ...], dtype: Any) -> Any:
    """Apply the transpose of a view's steps: put `value` where the view looks, zeros elsewhere."""
    shapes = [base_shape]
    probe = np.broadcast_to(np.zeros((), dtype), base_shape)
    for primitive, params in steps:
        probe = primitive(probe, **params)
        shapes.append(tuple(probe.shape))
    for (primitive, params), shape in zip(reversed(steps), reversed(shapes[:-1]), strict=True):
        rule = primitive.rules["x"]
        known = params | {"x_shape": shape, "x_dtype": np.dtype(dtype)}
        value = rule.function(core.namespace_of(value), value, *[known[n] for n in rule.names])
    return value


class ReplayedView(Node):
    """A node of a view whose base was written: replays steps of the view."""

    __slots__ = ("facts", "steps")

    def pull_back(self, g: Any, graph: bool) -> Any:
        shape, dtype = self.facts
        if graph and not current_mode().grad:
            g = vocabulary.copy(g)  # torch writes into new memory
        return (scatter_back(g, self.steps, shape, dtype),)


class AsStridedBackward0(ReplayedView):
    """Replays any number of steps: torch writes them as one, by sizes and strides."""

    __slots__ = ("_saved_size", "_saved_storage_offset", "_saved_stride")


class ViewAsRealBackward0(ReplayedView):
    """Replays a view of complex numbers as pairs, which no strides can tell."""

    __slots__ = ()


class ViewAsComplexBackward0(ReplayedView):
    """Replays a view of pairs as complex numbers."""

    __slots__ = ()


class ConjBackward0(ReplayedView):
    """Replays a view of the conjugates."""

    __slots__ = ()


class NegViewBackward0(ReplayedView):
    """Replays a view of the negatives."""

    __slots__ = ()


REPLAYED_AS = {
    "view_as_real": ViewAsRealBackward0,
    "view_as_complex": ViewAsComplexBackward0,
    "conj": ConjBackward0,
    "negative": NegViewBackward0,
}


class CopySlices(Node):
    """The node of a base of which a view was written: `fn` acts on the view's part of the gradient."""

    __slots__ = ("facts", "fn", "steps")
    saves = True

    @property
    def visible(self) -> Any:  # type: ignore[override]
        return self.fn.visible

    def pull_back(self, g: Any, graph: bool) -> Any:
        self.check_freed()
        shape, dtype = self.facts
        if graph and not current_mode().grad:
            g = vocabulary.copy(g)  # torch writes into new memory
        part = replay(g, self.steps)
        if not graph and isinstance(part, np.ndarray):
            part = part.copy()
        elif graph and not current_mode().grad:
            part = part.clone()
        grads = list(self._with_graph(part) if graph else self.fn.pull_back(part, graph))
        if self._edges[0] is not None:
            grads[0] = self._replace(g, self._fitted(grads[0], part), graph, shape, dtype)
        return grads

    def _with_graph(self, part: Any) -> Any:
        """Run the inner node; a result that it has saved stands where the view does, as a part of this node's."""
        levels = None if self.meta is None else self.meta.out_levels
        extra = self.fn.need_extra()
        extra.stands = _replaying(AsStridedBackward0, self.steps, self, self.facts, levels)
        try:
            return self.fn.pull_back(part, True)
        finally:
            extra.stands = None

    def _fitted(self, grad: Any, part: Any) -> Any:
        if grad is None:
            return vocabulary.zeros_like(part)
        facts = None if self.fn.meta is None else self.fn.meta.inputs[0]
        if facts is None:
            return grad
        # levels that the write gave the base leave where the base had none, not here
        grad = fit(grad, facts, self.fn.meta.rule_levels, frozenset() if self.meta is None else self.meta.out_levels)
        return vocabulary.zeros_like(part) if grad is None else grad

    def _replace(self, g: Any, value: Any, graph: bool, shape: tuple[int, ...], dtype: Any) -> Any:
        if not graph and isinstance(g, (np.ndarray, np.generic)) and not isinstance(value, LevelArray):
            own = type(g) is not np.ndarray and not isinstance(g, np.generic)  # a meta array, or a recorded one
            out = g.copy() if own else np.array(g, order="C")
            part = replay(out, self.steps)
            if np.may_share_memory(part, out):  # else a reshape had to copy
                part[...] = value
                return out
        if _shows_halves(self.steps):
            # half of a complex number may be written: no mask can say so
            rest = g - scatter_back(replay(g, self.steps), self.steps, shape, dtype)
            return rest + scatter_back(value, self.steps, shape, dtype)
        mask = scatter_back(_raw_ones(value, dtype), self.steps, shape, dtype) != 0
        return vocabulary.where(mask, scatter_back(value, self.steps, shape, dtype), g)

    def touch(self, graph: bool) -> None:
        self.check_freed()
        self.fn.touch(graph)

    def release(self, freed: Any) -> None:
        """Torch lets go of the inner node, so a second backward raises whatever that node saved."""
        if self.fn.saves:
            self.fn.release(freed)
        self.guard = freed


def _shows_halves(steps: tuple[Step, ...]) -> bool:
    """Tell whether a view may show a half of a complex number."""
    return any(
        primitive.name in ("view_as_real", "view_as_complex") or _shows_halves(params.get("steps", ()))
        for primitive, params in steps
    )


def _raw_ones(value: Any, dtype: Any) -> Any:
    array = value._array if hasattr(value, "_array") else value
    return core.ones_beside(array).astype(dtype, copy=False)


def fit(g: Any, facts: InputFacts, out_levels: frozenset[Any], keep: frozenset[Any]) -> Any:
    """Bring a gradient to its input's levels, shape and dtype. This happens once, at the edge."""
    if out_levels:
        for level in sorted(out_levels - facts.levels - keep, key=lambda one: -one.number):
            g = remove_level(g, level)
            if g is None:  # the output's tangents do not depend on the input
                return None
    if g.shape != facts.shape:
        g = vocabulary.sum_to(g, shape=facts.shape) if len(g.shape) >= len(facts.shape) else g
        if tuple(g.shape) != tuple(facts.shape):
            g = vocabulary.broadcast_to(g, shape=facts.shape)
    dtype = g._array.dtype if hasattr(g, "_array") else g.dtype
    if dtype != facts.dtype:
        g = vocabulary.astype(g, dtype=facts.dtype)
    return g


# ---- nodes of views ----
def replaying_node(view_tensor: Any, base: Any = None, steps: tuple[Step, ...] = ()) -> Any:
    """Make the node of a view whose base was written, or of one that steps make of a given tensor, which may be a view itself."""
    if base is None:
        base, steps = view_tensor._extra.view.base, view_tensor._extra.view.steps
    edge, facts = edge_of(base), (tuple(base._array.shape), base._array.dtype)
    levels = levels_of(base._array)
    *before, last = _pieces(steps)
    for cls, steps in before:
        node = _replaying(cls, steps, edge, facts, levels)
        made = replay(np.broadcast_to(np.zeros((), facts[1]), facts[0]), steps)
        edge, facts = node, (tuple(made.shape), made.dtype)
        if cls is AsStridedBackward0:
            layout = np.empty(facts[0], facts[1])
            node._saved_size, node._saved_storage_offset = facts[0], 0
            node._saved_stride = tuple(n // layout.itemsize for n in layout.strides)
    node = _replaying(*last, edge, facts, levels)
    if last[0] is AsStridedBackward0:
        node._saved_size, node._saved_stride = tuple(view_tensor.shape), view_tensor.stride()
        node._saved_storage_offset = view_tensor.storage_offset()
    return node


def _pieces(steps: tuple[Step, ...]) -> list[tuple[type[ReplayedView], tuple[Step, ...]]]:
    """Put the steps of a view into as few nodes as torch makes of them."""
    pieces: list[tuple[type[ReplayedView], tuple[Step, ...]]] = []
    for cls, piece in itertools.groupby(steps, lambda step: REPLAYED_AS.get(step[0].name)):
        if cls is None:
            pieces.append((AsStridedBackward0, tuple(piece)))
        else:
            pieces += [(cls, (step,)) for step in piece]
    return pieces or [(AsStridedBackward0, ())]


def _replaying(
    cls: type[ReplayedView], steps: tuple[Step, ...], edge: Any, facts: tuple[tuple[int, ...], Any], levels: Any
) -> Any:
    node: Any = cls().begin((edge,), of_user=False)
    node.steps, node.facts = steps, facts
    if levels:
        node.meta = Meta((InputFacts(*facts, levels),), levels, False)
    return node


def detached(tensor: Any) -> Any:
    """Return a tensor on the same memory and version, outside the graph and without tangents."""
    if type(tensor) in signed_types:
        from .signs import as_stored, carry

        result = detached(as_stored(tensor))
        return carry(tensor, result, result._array)
    if type(array := tensor._array) is np.ndarray:
        result = wrap(array[...], None, tensor._storage or storage_of(tensor))
    else:
        array = without_tangents(materialise(tensor))
        # an array of its own: by their arrays errors know tensors on the same memory apart
        result = wrap(array.view() if type(array) is np.ndarray else array, None, storage_of(tensor))
    return result if result._extra is None else share_birth(result, tensor)
