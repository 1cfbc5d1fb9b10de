"""Writes that autograd follows below modes and into tensors of wrapper classes.

See Note [Views and in-place] in `tensor/_aliasing/views.py`.

A view of a wrapper shares no memory that we know of: it is made again from its base by the operations that made it. Any other is found
by sizes and strides, as torch finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .._core.arrays import LevelArray
from .._core.levels import creation_numbers
from .._modes import Mode
from ..tensor import _base
from ..tensor._aliasing.view_nodes import REPLAYED_AS, CopySlices
from ..tensor._aliasing.views import GRAD, INFERENCE, MULTIPLE, NO_GRAD, NOWHERE, View, chained, wrote
from ..tensor._base import add_view, storage_of, wrap
from . import flat_tensors

PACKAGE = __package__.partition(".")[0]


def written_arguments(schema: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Any:
    """Return the tensors that an operation has written instead of what a class or mode has returned for them."""
    values = {one.name: args[k] if k < len(args) else kwargs.get(one.name) for k, one in enumerate(schema.arguments)}
    by_label: dict[str, Any] = {}
    for one in schema.arguments:
        if one.is_write:
            by_label |= dict.fromkeys(one.alias_info.before_set, values[one.name])
            for tensor in flat_tensors((values[one.name],)):
                if type(tensor) in _base.dispatch_types:
                    wrote(tensor)
    parts = [out] if len(schema.returns) == 1 else list(out) if schema.returns else []
    for at, one in enumerate(schema.returns):
        if one.is_write:
            parts[at] = next((by_label[label] for label in one.alias_info.before_set if label in by_label), parts[at])
    return out if not parts else parts[0] if len(schema.returns) == 1 else type(out)(parts)


class ViewStep:
    """A step from a base to a view of it: an operation."""

    def __init__(self, op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.op, self.source, self.args, self.kwargs = op, args[0], args[1:], kwargs
        self.name = str(op)


def note_views(op: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any, mode: Mode) -> None:
    """Views are made below, where gradients are off; autograd follows writes into them all the same."""
    if not op.is_view or not args:
        return
    source = args[0]
    if op._overloadpacket.__name__ == "detach":
        if type(out) in _base.dispatch_types and out is not source:
            out._storage = storage_of(source)  # which counts the writes
        return
    of = None if source._extra is None else source._extra.view
    many = isinstance(out, (list, tuple))
    made_in = INFERENCE if mode.inference else NO_GRAD if not mode.grad else MULTIPLE if many else GRAD
    made_in = of.made_in if of is not None and made_in == GRAD else made_in
    for one in out if many else (out,):
        view = None if one._extra is None else one._extra.view
        if view is not None:
            view.made_in = made_in
        elif type(one) in _base.dispatch_types and one is not source:
            base = source if of is None else of.base
            storage = one._storage = storage_of(base)
            steps = chained(((ViewStep(op, args, kwargs), {}),), None if of is None else of.chain)  # type: ignore[arg-type]
            one._extra = View(base, steps, made_in, storage.version)
            add_view(base, one)
            if one._edge is None and base._edge is not None:
                one._edge = NOWHERE


class SeenCopySlices(CopySlices):
    """The node of a base of which a view was written, by operations that are seen."""

    __slots__ = ("calls", "geometry", "of_view")
    of_dispatch = True
    steps = property(lambda self: (), lambda self, steps: None)  # they hold the base, which holds this node

    def pull_back(self, g: Any, graph: bool) -> Any:
        self.check_freed()
        g = g if graph else wrap(g)
        torch = import_module(PACKAGE)
        whole = torch.ops.aten.new_empty_strided.default(g, *self.geometry).copy_(g)
        part = self.part_of(whole)
        grads = list(self.fn.pull_back(part.clone(memory_format=torch.contiguous_format), True))
        if self._edges[0] is not None:
            if grads[0] is None:
                part.zero_()
            else:
                part.copy_(grads[0])
            grads[0] = whole
        return grads if graph else [None if one is None else one._array for one in grads]

    def part_of(self, whole: Any) -> Any:
        """Take what the view takes of its base."""
        if self.of_view is not None:
            return whole.as_strided(*self.of_view)
        for op, args, kwargs in self.calls:
            whole = op(whole, *args, **kwargs)
        return whole


def is_strided(view: View) -> bool:
    """Tell whether sizes and strides say what a view shows."""
    return not isinstance(view.base._array, LevelArray) and not any(one.name in REPLAYED_AS for one, _ in view.steps)


def _place_in(base: Any, tensor: Any) -> tuple[Any, ...] | None:
    """Return the sizes, strides and offset of a view in memory that begins with its base; None for a wrapper."""
    if type(tensor) in _base.dispatch_types:
        return None
    return list(tensor.shape), list(tensor.stride()), tensor.storage_offset() - base.storage_offset()


def copy_slices(tensor: Any, view: View) -> CopySlices:
    """Make the node for a write into a view, still without what every such node has."""
    if not is_strided(view):
        return CopySlices()
    node = SeenCopySlices()
    node.geometry = list(view.base.shape), list(view.base.stride())
    node.of_view = _place_in(view.base, tensor)
    steps: Any = view.steps if node.of_view is None else ()
    node.calls = [(step.op, step.args, step.kwargs) for step, _ in steps]
    return node


def replaying_node(tensor: Any, view: View, edge: Any) -> Any:
    """Make the node of a view whose base, which has an edge, was written."""
    from . import recording

    place = _place_in(view.base, tensor)
    aten = import_module(f"{PACKAGE}.ops").aten
    steps: Any = view.steps
    calls: Any = (
        [(step.op, (step.source, *step.args), step.kwargs) for step, _ in steps]
        if place is None
        else [(aten.as_strided.default, (view.base, *place), {})]
    )
    for op, args, kwargs in calls:
        edge = recording.node_of(op, args, kwargs, edge)
        edge.seq = creation_numbers()
    return edge
