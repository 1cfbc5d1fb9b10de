"""What leaves a vmap shows the memory of what entered it, as far as the function has only viewed that.

Note [Views that leave a vmap]
Rule 1. A view made inside, of a tensor that has entered, is outside a view of the tensor that it showed there; by one step,
        `each_sample`, which takes the steps of the inner view sample by sample. What was not viewed and stays on its axis
        is that tensor itself.
Rule 2. A tensor made inside is outside a new one, the same for all outputs that are views of it, with the version of the inner
        one: a write outside is noticed by whoever saved the tensor inside.
Rule 3. What is the same for all samples is expanded.
"""

from __future__ import annotations

from typing import Any

from ..._core.arrays import levels_of, raw_leaf
from ..._core.levels import BATCH, Level
from ..._core.primitive import linear, vocabulary
from ..._graph.node import Node
from ..._modes import current_mode
from ..._places import user_place
from .._base import materialise, signed_types, stored
from .entering import base_of, entered
from .inplace import may_overlap
from .view_nodes import replay, scatter_back
from .views import GRAD, register_view


def _in_samples(array: Any, size: int, axis: int, out_axis: int, change: Any) -> Any:
    """Change every sample of an array."""
    level = Level(BATCH, size)
    out = change(vocabulary.enter_batch(array, level=level, axis=axis))
    out = vocabulary.leave_batch(out, level=level, axis=out_axis)
    level.alone = None
    return out


@linear(view=True)
def each_sample(xp, x, *, axis, out_axis, steps):  # type: ignore[no-untyped-def]
    """Take the steps of a view in every sample of an array."""
    return _in_samples(x, x.shape[axis], axis, out_axis, lambda one: replay(one, steps))


@each_sample.vjp("x")
def each_sample_dx(xp, g, x_shape, x_dtype, axis, out_axis, steps):  # type: ignore[no-untyped-def]
    shape = (*x_shape[:axis], *x_shape[axis + 1 :])
    return _in_samples(g, x_shape[axis], out_axis, axis, lambda one: scatter_back(one, steps, shape, x_dtype))


@each_sample.batch
def each_sample_batched(call, args, batched, size, *, axis, out_axis, steps):  # type: ignore[no-untyped-def]
    return call(args[0], axis=axis + 1, out_axis=out_axis + 1, steps=steps)


class Leaving:
    """Takes the outputs of one vmap out of its level. See Note [Views that leave a vmap]."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.wholes: dict[
            int, tuple[Any, Any]
        ] = {}  # by id of a tensor made inside, which stays alive here: what it is outside
        self.place = user_place(3)

    def leave(self, out: Any, axis: int) -> Any:
        """Return a tensor as it is outside, the batch on an axis."""
        if self.level not in levels_of(out._array):
            wide = out.expand(self.level.size, *out.shape)
            return wide if axis == 0 else wide.movedim(0, axis)
        base = base_of(out)
        link = entered(base)
        if link is not None and link.level is self.level:
            source, at = link.outer, link.leaving[1]["axis"]  # type: ignore[index]
        elif self.level in levels_of(base._array):
            source, at = self._whole(base), 0
        else:
            return self._left(out, axis)
        if base is out and at == axis:
            return source
        left = self._left(out, axis)
        if _share_memory(source, left):
            view = None if base is out else out._extra.view
            step = (each_sample, {"axis": at, "out_axis": axis, "steps": () if view is None else view.steps})
            register_view(source, left, (step,), current_mode())
            if view is not None and view.made_in != GRAD and left._extra is not None:
                left._extra.made_in = view.made_in
        return left

    def _whole(self, base: Any) -> Any:
        """Return what a tensor made inside is outside, with the batch in front."""
        known = self.wholes.get(id(base))
        if known is None:
            known = self.wholes[id(base)] = (base, self._left(base, 0))
        return known[1]

    def _left(self, out: Any, axis: int) -> Any:
        left = vocabulary.leave_batch(out, level=self.level, axis=axis)
        if type(out) in signed_types:
            from .signs import carry

            carry(out, left, vocabulary.leave_batch(stored(out), level=self.level, axis=axis))
        if isinstance(left._edge, Node) and self.place is not None:
            left._edge.code, left._edge.lasti = self.place.code, self.place.offset
        return left


def _share_memory(one: Any, other: Any) -> bool:
    """Tell whether two tensors show the same memory; by their bounds, because one is made of the other."""
    if type(one) not in signed_types:
        materialise(one)
    first, second = raw_leaf(stored(one)), raw_leaf(stored(other))
    return first.size == 0 or may_overlap(first, second)
