"""Views and writes: tensors that share memory, and what an in-place operation does to the graph.

Note [Views and in-place]
Rule 1. A view knows its root base and the steps that make it from the base; the base's Storage knows its views weakly.
Rule 2. An in-place operation computes its result as an ordinary operation, writes it into memory, moves the version and
        gives the tensor the new node ("rebase"). On a view, the base gets a CopySlices node instead, which applies the
        operation's node to the view's part of the gradient.
Rule 3. After every write each live view is given a fresh node that replays its steps from the base's node, so a tensor's
        `_edge` is always current and the hot path may read it without asking. (torch does this when `grad_fn` is read.)
Rule 4. A view that has no node, but whose base requires grad, requires grad and leads NOWHERE. A view that autograd does
        not follow (made under no_grad, or one of several) and whose base was written becomes a `ForbiddenView`: its
        `_edge` raises, so every operation that would record it does.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from ... import _errors
from ..._core import primitive as core
from ..._core.arrays import Dual, LevelArray, levels_of
from ..._core.levels import BATCH, creation_numbers
from ..._core.primitive import Primitive, vocabulary
from ..._graph.node import Guard, InputFacts, Meta, Node, Slot
from ..._modes import NO_GRAD as NO_GRAD_MODE
from ..._modes import PLAIN, Mode, current_mode, read_mode, using
from ..._ops.shape import overwrite
from ..._places import user_frame
from .. import _base
from .._base import (
    LEAF,
    NothingExtra,
    _edge_slot,
    add_view,
    edge_of,
    get_frame,
    materialise,
    signed_types,
    storage_of,
    stored,
    wrap,
)
from .._recording import record as _record
from .._recording.flat import flat_recorder
from .entering import (
    A_LEAF,
    A_VIEW_OF_A_LEAF,
    base_of,
    check_outside,
    entered,
    given_tangent,
    refuse_captured,
    show_tangent,
    shown_tangent,
)
from .memory import covers, own_memory, store
from .view_nodes import CopySlices, Step, replaying_node

Chain = tuple[Any, Step] | None  # the steps of a view: those before the last, and the last
GRAD, MULTIPLE, NO_GRAD, INFERENCE, FUNCTION = "grad", "multiple", "no_grad", "inference", "function"


def chained(steps: tuple[Step, ...], chain: Chain = None) -> Chain:
    """Add steps to those of a view."""
    for step in steps:
        chain = (chain, step)
    return chain


class View(NothingExtra):
    """How a tensor is made from its base: the base itself and the steps to replay. The `_extra` of every view."""

    __slots__ = ("base", "chain", "made_in", "version")
    narrow = True
    was: Any = None  # the array before an in-place view such as `squeeze_`

    def __init__(self, base: Any, chain: Chain, made_in: str, version: int) -> None:
        self.base = base
        self.chain = chain  # shared with the view that this one was made of: a view costs the same at any depth
        self.made_in = made_in  # torch's creation_meta; only GRAD lets autograd follow writes
        self.version = version  # of the base when the view's edge was made

    @property
    def view(self) -> Any:
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps from the base to the view, in order."""
        found: list[Step] = []
        chain = self.chain
        while chain is not None:
            chain, step = chain
            found.append(step)
        return tuple(reversed(found))

    def widened(self) -> WideView:
        """Return the same with room for a gradient, hooks and what else few tensors have."""
        return WideView(self.base, self.chain, self.made_in, self.version)


class WideView(View):
    """A view with more in it, which few have."""

    narrow = False


class Nowhere(Node):
    """The edge of a tensor that requires grad only because its base does: gradients end here."""

    __slots__ = ()
    hidden = True

    def __init__(self) -> None:
        self._edges = ()
        self.seq = 0
        self.code, self.lasti = None, 0
        self.meta = self.guard = self.extra = None

    @property
    def _storage(self) -> None:
        """Return None: many tensors lead here, each with memory of its own."""

    @_storage.setter
    def _storage(self, storage: Any) -> None:
        pass

    def pull_back(self, g: Any, graph: bool) -> Any:
        return ()


NOWHERE = Nowhere()


def view_op(
    tensor: Any,
    primitive: Primitive,
    params: dict[str, Any],
    name: str,
    shown: dict[str, Any] | None = None,
) -> Any:
    """Make a view by a primitive whose result shares memory with its input; `shown` is for `_saved_*` names."""
    mode = read_mode()
    if mode is PLAIN or mode is NO_GRAD_MODE:
        flat = primitive.view_recorders.get(name)
        if flat is None:
            check_declared(primitive)
            flat = primitive.view_recorders[name] = flat_recorder(primitive, name, view=True)
        result = flat(tensor, params, shown, mode is PLAIN)
        if result is not None:
            return result
    check_declared(primitive)
    if type(tensor) not in signed_types:
        materialise(tensor)
        forget_ended_level(tensor)
    result = _record.record(primitive, (tensor,), params, name, shown)
    if result._edge is not None and result._array.dtype.kind in "biu":
        refuse_integers(result)
    register_view(tensor, result, ((primitive, params),), current_mode())
    if type(tensor) in signed_types:
        from .signs import carry

        carry(tensor, result, primitive.bind((stored(tensor),), params))
    return result


def check_declared(primitive: Primitive) -> None:
    """Refuse views by an operation that is not declared to make any: transforms would lose writes into them."""
    if not primitive.view:
        raise TypeError(f"{primitive.name} makes a view, but its declaration does not say view=True")


def refuse_integers(result: Any) -> None:
    """Raise torch's error for a recorded result whose dtype cannot have a gradient."""
    raise RuntimeError(f"Autograd not support dtype: {_scalar_type(result)}")


def register_view(source: Any, result: Any, steps: tuple[Step, ...], mode: Mode, multiple: bool = False) -> None:
    """Note that `result` is made from `source` by `steps` and shares its memory."""
    storage = storage_of(source)
    if storage.inference:
        result._storage = storage
        return
    of = None if source._extra is None else source._extra.view
    base = source if of is None else of.base
    made_in = INFERENCE if mode.inference else NO_GRAD if not mode.grad else MULTIPLE if multiple else GRAD
    if of is not None and made_in == GRAD:
        made_in = of.made_in
    storage = result._storage = storage_of(base)
    result._extra = View(base, chained(steps, None if of is None else of.chain), made_in, storage.version)
    add_view(base, result)
    if result._edge is None and base._edge is not None:
        result._edge = NOWHERE


# ---- writing ----
def check_inplace(
    tensor: Any, others: tuple[Any, ...] = (), name: str = "", args: Any = (), kwargs: Any = None
) -> None:
    """Raise torch's errors for an in-place operation that autograd cannot allow, before anything is changed.

    `name` and the arguments tell torch's operator; none for writes that are no operations in place.
    """
    mode = current_mode()
    if mode.transforms:
        if name:
            refuse_captured(tensor, name, args, kwargs)
        if mode.tracks:
            check_outside(tensor)
    if type(tensor._array) is Dual:
        forget_ended_level(tensor)
    if mode.tracks and (tensor.requires_grad or any(o.requires_grad for o in others)):
        check_tracked(tensor)
        for other in others:
            _ = other._edge  # raises if autograd has lost the view
    for pack, _ in mode.saved_hooks:
        context: Any = getattr(pack, "__self__", None)  # of allow_mutation_on_saved_tensors, see autograd/_mutation.py
        if hasattr(context, "before_write"):
            context.before_write(tensor)


def forget_ended_level(tensor: Any) -> None:
    """Turn a dual whose level has ended into its primal, before it is viewed or written into."""
    array = tensor._array
    if type(array) is not Dual or array.level.alive or core.engine_state.depth:
        return
    with using(grad=True):
        primal = vocabulary.dual_plain(tensor, level=array.level)
    tensor._array = primal._array
    if tensor._edge is not LEAF:
        tensor._edge = primal._edge


def refuse_inference(storage: Any) -> None:
    """Raise torch's error for a write into an inference tensor; torch has written by then."""
    if storage.inference and not current_mode().inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update."
        )


def check_tracked(tensor: Any) -> None:
    """Refuse to give a leaf, or a view that autograd does not follow, the history of a write."""
    view = None if tensor._extra is None else tensor._extra.view
    if view is not None:
        check_view_rebase(view, tensor)
        if tensor._edge is not None and view.base.is_leaf:
            raise RuntimeError(A_VIEW_OF_A_LEAF)
    if tensor._edge is LEAF:
        raise RuntimeError(A_LEAF)


def check_view_rebase(view: View, tensor: Any) -> None:
    """Refuse to rebase views that autograd does not follow."""
    if view.made_in != GRAD:
        raise RuntimeError(refusal(tensor, "is being"))


def refusal(tensor: Any, what: str) -> str:
    """Write torch's sentences about a write that autograd cannot follow into a view; `what` says who was written."""
    made_in = tensor._extra.view.made_in
    edge = _edge_slot.__get__(tensor)
    node, output = (edge.node, edge.index) if type(edge) is Slot else (edge, 0)
    name = _errors.short_name(node.name()) if isinstance(node, Node) and node is not NOWHERE else ""
    if made_in in (INFERENCE, NO_GRAD) or not name:
        start = (
            f"Output {output} of {name} is a view of a view which was created in" if name else "A view was created in"
        )
        if made_in == INFERENCE:
            start += f" inference mode and {what} modified inplace in normal mode."
        else:
            start += f" no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        start = f"Output {output} of {name} is a view and {what} modified inplace."
    if made_in == MULTIPLE:
        return (
            f"{start} This view is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    if made_in == FUNCTION:
        return (
            f"{start} This view was created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated with the custom "
            "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
            "output of the custom Function."
        )
    block = "inference_mode" if made_in == INFERENCE else "no_grad"
    return (
        f"{start} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
        f"moving both the view and the inplace either both inside the {block} block (if you don't want the inplace to "
        "be tracked) or both outside (if you want the inplace to be tracked)."
    )


def write_array(tensor: Any, value: Any) -> None:
    """Write an array into a tensor's memory, raising the tensor to the levels of the value that it lacks."""
    if type(tensor) in signed_types:
        from .signs import write_stored

        return write_stored(tensor, value, write_array)
    if (mode := read_mode()) is not None and mode.recording is not None:
        mode.recording.need_traced((tensor,))
    target = materialise(tensor)
    if tensor._storage is not None:
        refuse_inference(tensor._storage)
    if isinstance(value, LevelArray) and not covers(target, value):
        from .raising_levels import promote

        promote(tensor, value)
        target = tensor._array
    store(target, value)


def adopt(tensor: Any, result: Any) -> Any:
    """Finish an in-place operation: write its result, move the version, rebase the graph."""
    if tuple(result._array.shape) != tuple(tensor._array.shape):
        raise RuntimeError(
            f"output with shape {_errors.sizes(tensor._array.shape)} doesn't match the broadcast shape "
            f"{_errors.sizes(result._array.shape)}"
        )
    own, given = tensor._array.dtype, result._array.dtype
    if given is not own and not _castable(result, tensor):
        raise RuntimeError(
            f"result type {_scalar_type(result)} can't be cast to the desired output type {_scalar_type(tensor)}"
        )
    _keep_original(tensor, result._edge)
    node = result._edge
    if given is not own and given != own and isinstance(node, Node) and node.meta is None:
        # gradients will come in the tensor's dtype, and leave in that of the operation
        facts = InputFacts(tuple(result._array.shape), result._array.dtype, levels_of(result._array))
        node.meta = Meta(tuple(None if e is None else facts for e in node._edges), levels_of(result._array), False)
    write_array(tensor, result._array)
    finish_write(tensor, result._edge)
    return tensor


def before_write(tensor: Any) -> Any:
    """Return what an in-place operation computes from: the tensor, or a copy where the tensor itself cannot be saved."""
    mode = current_mode()
    held = tensor._storage is not None and tensor._storage.inference
    if not (mode.saved_hooks or held) or not mode.grad:
        return tensor
    return wrap(own_memory(tensor._array), tensor._edge, None)


def _keep_original(tensor: Any, node: Any) -> None:
    """Let the operation's own node save a copy of what it overwrites, as torch does."""
    if not isinstance(node, Node) or node.primitive is None:
        return
    for name in node.array_names:
        if name == "out" or node.input_of[name] != 0:
            continue
        value = getattr(node, name)
        computed = value is not None and not isinstance(value, bool)  # True: hooks hold it
        signed = computed and type(tensor) in signed_types  # values that were computed, not taken from memory
        if signed or value is tensor._array or (isinstance(value, np.generic) and not tensor._array.shape):
            setattr(node, name, own_memory(value))
            if type(node.guard) is not Guard:
                node.guard = Guard()
            node.guard.versions[name] = (None, 0)


def finish_write(tensor: Any, edge: Any) -> None:
    """Move the version after a write and rebase the graph on the node of the operation."""
    storage = tensor._storage or storage_of(tensor)
    storage.written()
    node = edge
    if node is None:
        if storage.views is not None:
            sync_views(storage)
    elif isinstance(node, Node):
        if "out" in node.array_names and getattr(node, "out", None) is not None and node.primitive is not None:
            if type(node.guard) is not Guard:
                node.guard = Guard()
            if "out" not in node.guard.packed:
                node.out = tensor._array
            elif (given := node.guard.packed["out"].given()) is not None:
                given._array, given._storage = tensor._array, storage
            node.guard.versions["out"] = (storage, storage.version)
        rebase(tensor, node)
    elif storage.views is not None:
        sync_views(storage)


def wrote(*tensors: Any) -> None:
    """Note writes that have no node of their own."""
    frame = user_frame(get_frame(1))
    code, lasti = frame.f_code, frame.f_lasti
    for tensor in tensors:
        storage = tensor._storage or storage_of(tensor)
        if storage.inference:
            refuse_inference(storage)
        if storage.owner is None and (tensor._extra is None or tensor._extra.view is None):
            storage.owner = ref(tensor)
        storage.written_at(code, lasti)
        if storage.views is not None:
            sync_views(storage)


def _castable(result: Any, tensor: Any) -> bool:
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
    return order[result._array.dtype.kind] <= order[tensor._array.dtype.kind]


def _scalar_type(tensor: Any) -> str:
    return _base.dtype_of(tensor)._scalar_name


def rebase(tensor: Any, node: Any, written: Any = None) -> None:
    """Make `node`, which may be a Slot if the tensor is no view, the history of a written tensor. See Note [Views and in-place].

    `written` is the tensor inside a transform, showing this one, that the write was made into.
    """
    view = None if tensor._extra is None else tensor._extra.view
    if view is None:
        if tensor._extra is not None and tensor._extra.retains_grad:
            _move_retained(tensor, node)
        tensor._edge = node
        base = tensor
    else:
        base = view.base
        shape, dtype = tuple(base._array.shape), base._array.dtype
        if node.keeps_shapes and node.meta is None:
            node.meta = node._seen_shapes()
        slices = _base.dispatch_layer(".writing").copy_slices(tensor, view) if node.of_dispatch else CopySlices()
        slices._edges = (edge_of(base), *node._edges[1:])
        slices.steps, slices.fn, slices.facts = view.steps, node, (shape, dtype)
        slices.seq, slices.code, slices.lasti = creation_numbers(), node.code, node.lasti
        slices.guard = slices.extra = slices._storage = None
        rest = (None,) * (len(node._edges) - 1) if node.meta is None else node.meta.inputs[1:]
        leveled = isinstance(base._array, LevelArray)
        slices.meta = None
        if leveled or node.meta is not None:
            first = InputFacts(shape, dtype, levels_of(base._array)) if slices._edges[0] is not None else None
            slices.meta = Meta((first, *rest), levels_of(base._array), False)
        if base._extra is not None and base._extra.retains_grad:
            _move_retained(base, slices)
        base._edge = slices
    storage = base._storage
    if storage is not None:
        storage.owner = ref(base)
        force_views(base, storage)
        if storage.inner is not None:
            enter_again(base, written)
    link = entered(base)
    if link is not None and link.leaving is not None:  # see Note [Writes inside transforms]
        primitive, params = link.leaving
        left, of = primitive(base, **params), link.outer._extra
        if of is not None and of.view is not None:
            left = _record.record(overwrite, (link.outer, left), {}, "CopyBackwards")
        rebase(link.outer, left._edge, base)


def enter_again(base: Any, written: Any = None) -> None:
    """Give tensors inside transforms that show a base new histories. See Note [Writes inside transforms]."""
    for one in tuple(base._storage.inner):
        inner = one()
        if inner is None or inner is written or inner is base:
            continue
        link, tangent = entered(inner), given_tangent(inner)
        if link is not None and link.leaving is not None and base_of(link.outer) is base:
            level = link.level
            if level is None:
                again = vocabulary.alias(link.outer)
            elif level.kind == BATCH:
                again = vocabulary.enter_batch(link.outer, **link.leaving[1])
            else:
                again = vocabulary.enter_dual(link.outer, vocabulary.dual_eps(inner, level=level), level=level)
        elif tangent is not None and base_of(tangent) is base:
            level = inner._array.level
            again = vocabulary.enter_dual(vocabulary.dual_plain(inner, level=level), tangent, level=level)
        else:
            continue
        if level is not None and not level.alive:
            continue
        known = shown_tangent(inner)
        inner._edge = again._edge
        if known is not None:
            show_tangent(inner, known)
        force_views(inner, inner._storage)
        enter_again(inner, written)


def force_views(base: Any, storage: Any) -> None:
    """Give all views of a base that has a new history new nodes."""
    for one in storage.views or ():
        other = one()
        if other is not None and other._extra.view is not None and other._extra.view.base is base:
            other._extra.view.version = -1
    if storage.views is not None:
        sync_views(storage)


def sync_views(storage: Any) -> None:
    """Bring the edges of all views of a storage up to date. See Note [Views and in-place]."""
    for one in storage.views:
        tensor = one()
        if tensor is not None and tensor._extra.view is not None:
            sync(tensor, storage.version)


def sync(tensor: Any, version: int) -> None:
    """Bring the edge of one view up to date, as torch does when `grad_fn` is read."""
    view = tensor._extra.view
    held = _edge_slot.__get__(tensor)
    has_node = held is not None and held is not LEAF and held is not NOWHERE
    if not has_node and view.base._edge is None:
        allow(tensor)
        if held is NOWHERE:
            tensor._edge = None
    elif view.version == version:
        if held is None:
            tensor._edge = NOWHERE
    elif view.made_in != GRAD:
        forbid(tensor)
    else:
        _refresh(tensor)
        view.version = version


def forbid(tensor: Any) -> None:
    """Let every use of this view in the graph raise."""
    from .forbidden import ForbiddenView

    if type(tensor) is _base.Tensor:
        tensor.__class__ = ForbiddenView


def allow(tensor: Any) -> None:
    """Undo `forbid`."""
    from .forbidden import ForbiddenView

    if type(tensor) is ForbiddenView:
        tensor.__class__ = _base.Tensor


def _refresh(view_tensor: Any) -> None:
    view = view_tensor._extra.view
    edge = edge_of(view.base)
    if getattr(edge.node if type(edge) is Slot else edge, "of_dispatch", False) and (
        writing := _base.dispatch_layer(".writing")
    ).is_strided(view):
        node = writing.replaying_node(view_tensor, view, edge)
    else:
        node = replaying_node(view_tensor)
    if view_tensor._extra.retains_grad:
        _move_retained(view_tensor, node)
    view_tensor._edge = node


def _move_retained(tensor: Any, edge: Any) -> None:
    """Let `retain_grad` follow a tensor to its new node."""
    node: Any
    old = tensor._edge
    if isinstance(old, (Node, Slot)):
        node, at = (old.node, old.index) if isinstance(old, Slot) else (old, 0)
        if node.extra is not None and node.extra.retained is not None:
            node.extra.retained.pop(at, None)
    node, at = (edge.node, edge.index) if type(edge) is Slot else (edge, 0)
    extra = node.need_extra()
    extra.retained = {**(extra.retained or {}), at: ref(tensor)}
