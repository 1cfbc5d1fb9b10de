"""Running a custom Function outside the graph, and giving its outputs their place in it.

Note [A Function inside a level]
On duals, the primals go through the Function as if nothing else was there, and `jvp` maps the tangents; on a batch, the
Function's own `vmap` may compute in any way it likes. Reverse mode may come to either from two sides. From outside the
level (a gradient of a tangent, or of all samples together) it differentiates what was computed there. From inside (a
`grad` within a `jvp` or a `vmap`) the whole thing is one operation on duals or samples, of which the user's `backward` is
the derivative, run on the duals or batches that ctx saved.
So the outputs get one node, a ctx of its own, with edges to the arguments and to what was computed. Which of them gradients
take depends on whether the level is one that gradients keep, see `_kept_levels` in engine.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core.arrays import levels_of
from .._core.levels import creation_numbers
from .._core.primitive import engine_state, vocabulary
from .._graph.node import InputFacts, Meta, Node, Slot
from .._modes import current_mode, using
from .._places import user_place, user_stack
from .._warnings import warn
from ..tensor import _base
from ..tensor._aliasing.entering import base_of
from ..tensor._aliasing.views import FUNCTION, MULTIPLE, NOWHERE, check_tracked, rebase, register_view, wrote
from ..tensor._base import LEAF, edge_of, wrap
from ..tensor._tensor import Tensor
from ._function_node import BackwardCFunction, FunctionNode, Saved

NEW, DIRTY, GIVEN, VIEW, CONSTANT = "new", "dirty", "given", "view", "constant"


class Made(NamedTuple):
    """What became of an output: new, an input that was changed or returned as it is, a view of one, or no variable."""

    kind: str
    source: Any = None  # the position of that input


_NEW, _CONSTANT = Made(NEW), Made(CONSTANT)


def facts_of(tensor: Any) -> InputFacts:
    """Describe what a gradient of a tensor must look like."""
    array = tensor._array
    return InputFacts(tuple(array.shape), array.dtype, levels_of(array))


def _facts_of_all(tensors: Sequence[Any], edges: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([None if edge is None else facts_of(a) for a, edge in zip(tensors, edges, strict=True)])


def new_node(cls: Any, args: tuple[Any, ...], mode: Any) -> Any:
    """Make the node of a call, with the facts about its arguments."""
    node: Any = FunctionNode()
    place = user_place()
    if place is not None:
        node.code, node.lasti = place.code, place.offset
    node.count = len(args)
    node.is_tensor_input = tuple([isinstance(a, Tensor) for a in args])
    node.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
    node._edges = (None,) * len(args)
    if mode.grad:
        node._edges = tuple([edge_of(a) if isinstance(a, Tensor) else None for a in args])
        if mode.transforms:
            node.in_reverse_transform = any(t.kind in ("grad", "vjp") for t in mode.transforms)
    if not all(node.is_tensor_input):
        node.visible = tuple([i for i, is_tensor in enumerate(node.is_tensor_input) if is_tensor])
    node.__class__ = cls._backward_cls  # from here on users set attributes, see `_function_attributes.py`
    return node


def run_forward(cls: Any, args: tuple[Any, ...], two_part: bool) -> tuple[Any, Any]:
    """Run forward outside the graph and connect its outputs. Returns the output and ctx."""
    mode = current_mode()
    node = new_node(cls, args, mode)
    facts = _facts_of_all(args, node._edges)  # before forward writes
    tracked = mode.grad and any(node.needs_input_grad)
    with using(grad=False, saved_hooks=()):
        if two_part:
            output = cls.forward(*args)
            cls.setup_context(node, args, output)
        else:
            output = cls.forward(node, *args)
    outputs = tuple(output) if isinstance(output, tuple) else (output,)
    wrapped = connect(node, args, outputs, facts, tracked, mode)
    return wrapped if isinstance(output, tuple) else wrapped[0], node


def connect(
    node: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], facts: Any, tracked: bool, mode: Any
) -> tuple[Any, ...]:
    """Make the node the history of the outputs, and keep what was saved."""
    kind, node.__class__ = type(node), FunctionNode  # which takes our attributes without asking whose they are
    try:
        return _connected(node, args, outputs, facts, tracked, mode)
    finally:
        node.__class__ = kind


def _connected(
    node: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], facts: Any, tracked: bool, mode: Any
) -> tuple[Any, ...]:
    node.num_outputs = len(outputs)
    node.of_forward = node.to_save or (), node.saved_for_forward
    wrapped = _placed(node, args, outputs, tracked, mode)
    out_facts = tuple([facts_of(o) if isinstance(o, Tensor) else None for o in wrapped])
    levels = frozenset().union(*[f.levels for f in out_facts if f is not None])
    node.meta = Meta(facts, levels, False)
    node.meta.outputs = out_facts
    if tracked:
        try:
            _keep_saved(node, outputs, wrapped)
        except BaseException:  # of a pack hook, perhaps the one that ends a recomputation: the outputs must not be kept
            node.to_save, node.of_forward = None, ()
            raise
        if mode.anomaly:
            extra = node.need_extra()
            extra.traceback = user_stack()
            extra.parent = engine_state.watched
    else:
        node._edges = (None,) * len(node._edges)
        node.to_save = node.dirty_tensors = node.non_differentiable = ()
    return wrapped


def join(
    node: Any, how: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], parts: Sequence[Any], tracked: bool, mode: Any
) -> tuple[Any, ...]:
    """Make the node the history of outputs made of `parts`, to which `how` brings gradients from outside its level.

    See Note [A Function inside a level].
    """
    edges = [edge_of(t) if isinstance(t, Tensor) and tracked else None for t in parts]
    facts = list(_facts_of_all(args, node._edges))
    for part, edge in zip(parts, edges, strict=True):
        facts.append(None if edge is None else facts_of(part))
        if edge is not None:
            facts[-1].levels |= {how.level}  # `how` itself has freed the gradient of it
    _let_rest(edges, node.seq)
    node.seq = creation_numbers()
    node.join = how
    node.runs_without_gradient = False
    node.visible = tuple([i for i, is_tensor in enumerate(node.is_tensor_input) if is_tensor])
    node._edges = (*node._edges, *edges)
    return connect(node, args, outputs, tuple(facts), tracked, mode)


def _let_rest(edges: Sequence[Any], since: int) -> None:
    """Have no user's backward called for nothing if gradients take the other way: that of nodes made since a moment."""
    seen: set[int] = set()
    stack = list(edges)
    while stack:
        edge = stack.pop()
        node = edge.node if type(edge) is Slot else edge
        if isinstance(node, Node) and node.seq > since and id(node) not in seen:
            seen.add(id(node))
            stack += node._edges
            if isinstance(node, BackwardCFunction):
                node.runs_without_gradient = False


def _placed(node: Any, args: Any, outputs: tuple[Any, ...], tracked: bool, mode: Any) -> tuple[Any, ...]:
    """Give the outputs their place in the graph: new, dirty, returned as they are, or views of inputs."""
    marked: Sequence[Any] = node.dirty_tensors or ()
    for i, one in enumerate(marked):
        if not isinstance(one, Tensor):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {i} is of type {type(one).__name__}"
            )
        wrote(one)  # besides what forward itself did, as in torch
    for one in node.non_differentiable or ():
        if not isinstance(one, Tensor):
            raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got {type(one).__name__}")
    dirty = {id(t) for t in marked}
    if dirty - {id(o) for o in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    given = {id(a): i for i, a in enumerate(args) if isinstance(a, Tensor)}
    constant = {id(t) for t in node.non_differentiable or ()}
    variables = sum([isinstance(o, Tensor) for o in outputs])
    made: list[Made] = []
    wrapped: list[Any] = []
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            made.append(_CONSTANT)
            wrapped.append(out)
            continue
        variable = id(out) not in constant and out._array.dtype.kind in "fcV"
        edge: Any = None
        if tracked and variable:
            edge = Slot(node, i) if len(outputs) != 1 else node
        view = None if out._extra is None else out._extra.view
        if id(out) in dirty:
            made.append(Made(DIRTY, given.get(id(out))))
            wrapped.append(_dirty_output(out, edge, view, id(out) in given, len(outputs)))
        elif id(out) in given:
            made.append(Made(GIVEN if variable else CONSTANT, given[id(out)]))
            free = edge is None and (id(out) in constant or out._edge is not None)
            wrapped.append(out.detach() if free else _returned_input(out, edge, mode, variables))
        else:
            made.append(_NEW if variable else _CONSTANT)
            if view is not None:
                view.made_in = FUNCTION if variables == 1 else MULTIPLE
                source = next(
                    (at for at, a in enumerate(args) if isinstance(a, Tensor) and base_of(a) is view.base), None
                )
                if variable and source is not None:
                    made[-1] = Made(VIEW, source)
            if edge is not None:
                out._edge = edge
            elif out._edge is not None and view is None:
                out = out.detach()
            wrapped.append(out)
    node.outputs_made = tuple(made)
    return tuple(wrapped)


def _dirty_output(out: Any, edge: Any, view: Any, is_input: bool, count: int) -> Any:
    """Make the node the history of an output that forward says it has written."""
    if edge is None:
        return out.detach() if out.requires_grad else out
    held = _base._edge_slot.__get__(out)  # also of a view that forward has made and written
    if held is LEAF or held is NOWHERE:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if not is_input:
        warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should "
            "be passed to ctx.mark_dirty()."
        )
    if view is not None:
        if count > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
                "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
                "the input is not a view (using .clone() for example) or make your Function only return one Tensor "
                "(potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
                "second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you "
                "need help to do this change."
            )
        check_tracked(out)
    if out._extra is not None and out._extra.grad is not None:
        out._extra.grad = None  # of what it was
    rebase(out, edge)
    return out


def _returned_input(out: Any, edge: Any, mode: Any, variables: int) -> Any:
    from .._ops.shape import alias
    from ..overrides import has_torch_function, may_take_over

    array = _base.materialise(out)
    result = wrap(vocabulary.alias(array) if array.ndim else array, None)
    if may_take_over() and has_torch_function((out,)):
        result = result.as_subclass(type(out))
    result._edge = edge
    register_view(out, result, ((alias, {}),), mode)
    if result._extra is not None and result._extra.view is not None:
        result._extra.view.made_in = FUNCTION if variables == 1 else MULTIPLE
    return result


def _keep_saved(node: Any, outputs: tuple[Any, ...], wrapped: tuple[Any, ...]) -> None:
    """Turn what forward saved into arrays with versions; outputs without their node, so that no cycle forms."""
    slots = {id(o): i for i, o in enumerate(outputs) if isinstance(o, Tensor)}
    slots |= {id(o): i for i, o in enumerate(wrapped) if isinstance(o, Tensor)}
    inputs_dirty = {id(t) for t in node.dirty_tensors or ()}
    kept: list[Any] = []
    for tensor in node.to_save or ():
        if tensor is None:
            kept.append(None)
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(kept)} is of type "
                f"{type(tensor).__name__}"
            )
        slot = slots.get(id(tensor))
        if slot is not None and id(tensor) not in inputs_dirty and wrapped[slot] is not tensor:
            slot = None  # an input returned as it is: the saved one is the input
        kept.append(Saved(tensor, slot))
    node._kept = kept
    node.to_save = node.dirty_tensors = node.non_differentiable = None
    node.saved_for_forward = None
