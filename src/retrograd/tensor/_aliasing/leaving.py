"""What leaves a transform: tensors outside that show the memory of those inside.

Note [Leaving a transform]
Rule 1. To leave is to alias: what comes out shares memory and Storage with what was inside. So a write into it is seen by every
        node inside that has saved it.
Rule 2. Where the tensor inside is one that has entered, or views one, what comes out is the outer tensor, or a view of it.
Rule 3. Of what was made inside a level, the first to leave is the outer tensor of its base; what leaves later is a view of that.
        (For batches see Note [Views that leave a vmap].)
Rule 4. A tangent is a part of the value that nodes inside have saved, but a write into it is none into that value. Where somebody
        can ask for its derivative, it leaves what was saved behind: the tangent and its dual get memory of their own.
"""

from __future__ import annotations

from typing import Any

from ..._core.arrays import Dual, levels_of
from ..._core.levels import Level
from ..._core.primitive import vocabulary
from ..._modes import current_mode
from .._base import materialise, storage_of, wrap
from .._functions.creation import zeros_like
from .entering import Entered, base_of, enter, entered, show_tangent, shown_tangent
from .memory import own_memory
from .views import GRAD, Step, register_view


def primal_of(tensor: Any, level: Level) -> Any:
    """Return the primal of a dual tensor."""
    materialise(tensor)
    base = base_of(tensor)
    leaving: Step = (vocabulary.dual_plain, {"level": level})
    whole: Step = (vocabulary.alias, {})
    if level not in levels_of(tensor._array):
        return _view(tensor, _left(tensor, leaving), (whole,))
    first = entered(base) is None and tensor is base
    link = _shown_outside(base, leaving)
    if link is None:
        return _left(tensor, leaving)
    return link.outer if first else _view(link.outer, _left(tensor, leaving), _steps(tensor) or (whole,), tensor)


def tangent_of(tensor: Any, level: Level) -> Any:
    """Return a tensor's tangent; zeros that depend on nothing if it has none."""
    array = tensor._array
    if level not in levels_of(array):
        return zeros_like(tensor)
    if type(array) is Dual and array.level is level and (known := shown_tangent(tensor)) is not None:
        return known
    tangent = vocabulary.dual_eps(tensor, level=level)
    if tangent._edge is not None:
        tangent._array = own_memory(tangent._array)
        if type(array) is Dual and array.level is level and base_of(tensor) is tensor and not storage_of(tensor).views:
            tensor._array = Dual(level, array.primal, tangent._array)  # nodes keep the tangent as it was
            show_tangent(tensor, tangent)
    return tangent


def out_of_variables(tensor: Any) -> Any:
    """Return what a tensor inside of a grad or vjp that has ended is outside: another only if it shows one that has entered."""
    base = base_of(tensor)
    link = entered(base)
    if link is None or link.level is not None or link.transforms != len(current_mode().transforms):
        return tensor
    if tensor is base:
        return link.outer
    return _view(link.outer, wrap(tensor._array, tensor._edge), _steps(tensor), tensor)


def _shown_outside(base: Any, leaving: Step) -> Entered | None:
    """Return how a base belongs to a tensor outside of a level, which is made if there is none; None if it has come another way."""
    if entered(base) is None:
        enter(base, _left(base, leaving), leaving)
    link = entered(base)
    return link if link is not None and link.level is leaving[1]["level"] else None


def _left(tensor: Any, leaving: Step) -> Any:
    primitive, params = leaving
    return primitive(tensor, **params)


def _steps(tensor: Any) -> tuple[Step, ...]:
    """Return the steps that make a tensor from its base."""
    view = None if tensor._extra is None else tensor._extra.view
    return () if view is None else view.steps


def _view(outer: Any, result: Any, steps: tuple[Step, ...], inside: Any = None) -> Any:
    """Let a tensor outside be a view; what autograd does not follow inside, it does not follow outside."""
    register_view(outer, result, steps, current_mode())
    view = None if inside is None or inside._extra is None else inside._extra.view
    if view is not None and view.made_in != GRAD and result._extra is not None and result._extra.view is not None:
        result._extra.view.made_in = view.made_in
    return result
