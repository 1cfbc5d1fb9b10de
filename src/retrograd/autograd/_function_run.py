"""Running a custom Function outside the graph, on a batch and on duals, and giving its outputs their place in the graph.

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

from .._core.arrays import LevelArray, levels_of
from .._core.levels import BATCH, DUAL, creation_numbers
from .._core.primitive import engine_state, vocabulary
from .._graph.node import InputFacts, Meta, Node, Slot
from .._modes import current_mode, using
from .._ops.shape import alias
from .._places import user_place, user_stack
from .._warnings import warn
from ..overrides import has_torch_function, may_take_over
from ..tensor import _base
from ..tensor._aliasing.entering import base_of, entered
from ..tensor._aliasing.views import FUNCTION, MULTIPLE, NOWHERE, check_tracked, rebase, register_view, wrote
from ..tensor._base import LEAF, edge_of, wrap
from ..tensor._functions.creation import zeros_like
from ..tensor._tensor import Tensor
from ._function_attributes import delete_by_user, read_by_user, set_by_user, users_attributes
from ._function_node import BackwardCFunction, FunctionNode, Saved, not_a_variable
from .forward_ad import check_dual, keep_tangent, parts_of

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
    if may_take_over() and has_torch_function((out,)):
        with using(grad=False):
            result = out.view_as(out)  # which a subclass makes: it knows what belongs to it
    else:
        array = _base.materialise(out)
        result = wrap(vocabulary.alias(array) if array.ndim else array, None)
        register_view(out, result, ((alias, {}),), mode)
    result._edge = edge
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


# ---- on a batch of vmap: their own `vmap` ----
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


# ---- on dual tensors: their `jvp` ----
class _Duals(NamedTuple):
    """How gradients come to primals and tangents: the level, and which outputs have a tangent."""

    level: Any
    outputs: list[bool]

    def gradients(self, parts: Any) -> list[Any]:
        level = self.level
        primals: list[Any] = []
        tangents: list[Any] = []
        for part, dual in zip(parts, self.outputs, strict=True):
            if part is None or not dual:
                primals.append(part)
                tangents.append(None)
                continue
            moves = level in levels_of(getattr(part, "_array", part))
            primals.append(vocabulary.dual_eps(part, level=level) if moves else None)
            tangents.append(vocabulary.dual_plain(part, level=level))
        return primals + tangents


def run(cls: Any, args: tuple[Any, ...], two_part: bool, ctx_wanted: bool = False) -> tuple[Any, Any]:
    """Run a Function on values of any levels. Returns the output and ctx, which is complete if it is wanted."""
    arrays = [a._array for a in args if isinstance(a, Tensor) and isinstance(a._array, LevelArray)]
    if arrays:
        levels = frozenset().union(*map(levels_of, arrays))
        top = max(levels, key=lambda one: one.number)
        if top.kind == BATCH and two_part and has_own_rule(cls):
            return run_batched(cls, top, args, ctx_wanted)
        duals = [one for one in levels if one.kind == DUAL]
        if duals:
            level = max(duals, key=lambda one: one.number)
            if level.alive:
                return _run_dual(cls, level, args, two_part, ctx_wanted)
            return run(cls, tuple([_without(a, level) for a in args]), two_part, ctx_wanted)
    return run_forward(cls, args, two_part)


def _without(arg: Any, level: Any) -> Any:
    return vocabulary.dual_plain(arg, level=level) if isinstance(arg, Tensor) else arg


def _run_dual(cls: Any, level: Any, args: tuple[Any, ...], two_part: bool, ctx_wanted: bool) -> tuple[Any, Any]:
    """Run the Function on primals and its jvp on tangents, and join the results."""
    primals: list[Any] = []
    tangents: list[Any] = []
    for arg in args:
        if isinstance(arg, Tensor) and level in levels_of(arg._array):
            primal, tangent = parts_of(arg, level)
            primals.append(primal)
            tangents.append(tangent)
        else:
            primals.append(arg)
            tangents.append(None)
    mode = current_mode()
    node = new_node(cls, args, mode)  # before forward may write into the arguments
    output, inner = run(cls, tuple(primals), two_part, ctx_wanted=True)
    outs = output if isinstance(output, tuple) else (output,)
    pushed = _pushed(cls, level, inner, args, primals, tangents, outs)
    tracked = mode.grad and any(isinstance(t, Tensor) and t._edge is not None for t in (*args, *outs, *pushed))
    raw = tuple(
        [
            args[made.source] if made.kind is DIRTY else _joined(out, t, level, tracked and made.kind is not CONSTANT)
            for out, t, made in zip(outs, pushed, inner.outputs_made, strict=True)
        ]
    )
    for out, t, made in zip(outs, pushed, inner.outputs_made, strict=True):
        if made.kind is DIRTY and t is not None:
            args[made.source]._array = _joined(out, t, level, False)._array
    if tracked or ctx_wanted:
        _set_up(cls, node, inner, args, primals, raw, outs, isinstance(output, tuple), two_part)
        duals = [isinstance(o, Tensor) and level in levels_of(o._array) for o in raw]
        raw = join(node, _Duals(level, duals), args, raw, (*outs, *pushed), tracked, mode)
    for one, t in zip(raw, pushed, strict=True):
        keep_tangent(one, t)
    inner.of_forward = ()
    return raw if isinstance(output, tuple) else raw[0], node


def _joined(out: Any, tangent: Any, level: Any, always: bool) -> Any:
    """Return a new tensor outside the graph: a dual, or a copy of what has no tangent."""
    if not isinstance(out, Tensor):
        return out
    with using(grad=False):
        if tangent is None and not always:
            return wrap(out._array, None, out._storage)
        return vocabulary.enter_dual(out, vocabulary.zeros_like(out) if tangent is None else tangent, level=level)


def _set_up(
    cls: Any, node: Any, inner: Any, args: Any, primals: Any, raw: Any, outs: Any, many: bool, two_part: bool
) -> None:
    """Fill the ctx of duals: by `setup_context`, or from what forward left in the ctx of primals."""
    if two_part:
        with using(grad=False, saved_hooks=()):
            cls.setup_context(node, args, raw if many else raw[0])
        return
    dual_of = {id(p): a for p, a in zip(primals, args, strict=True)} | {
        id(o): r for o, r in zip(outs, raw, strict=True)
    }

    def lifted(tensors: Any) -> Any:
        return None if tensors is None else tuple([dual_of.get(id(t), t) for t in tensors])

    node.to_save, node.saved_for_forward = map(lifted, inner.of_forward)
    node.dirty_tensors = tuple([r for r, made in zip(raw, inner.outputs_made, strict=True) if made.kind is DIRTY])
    node.non_differentiable = tuple(
        [r for r, made in zip(raw, inner.outputs_made, strict=True) if made.kind is CONSTANT]
    )
    node._materialize = inner._materialize
    for name, value in users_attributes(inner).items():
        set_by_user(node, name, value)


class _JvpContext:
    """ctx as jvp sees it: attributes of the node, saved tensors of the forward pass."""

    def __init__(self, node: Any) -> None:
        _, for_forward = node.of_forward
        self.__dict__["_node"] = node
        self.__dict__["saved_tensors"] = () if for_forward is None else for_forward

    def __getattr__(self, name: str) -> Any:
        return read_by_user(self._node, name)

    def __setattr__(self, name: str, value: Any) -> None:
        set_by_user(self._node, name, value)

    def __delattr__(self, name: str) -> None:
        delete_by_user(self._node, name)


def _pushed(
    cls: Any, level: Any, node: Any, args: tuple[Any, ...], primals: Any, tangents: Any, outs: Any
) -> tuple[Any, ...]:
    """Call the user's jvp and check what it returns."""
    given = tangents
    if node._materialize:
        given = [
            zeros_like(p) if t is None and isinstance(p, Tensor) and p._array.dtype.kind in "fcV" else t
            for p, t in zip(primals, tangents, strict=True)
        ]
    versions = [None if t is None else t._version for t in tangents]
    returned = cls.jvp(_JvpContext(node), *given)
    pushed = returned if isinstance(returned, tuple) else (returned,)
    if len(pushed) != len(outs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(pushed)})"
        )
    follows_views = any(t.kind == "dual_level" and t.level is level for t in current_mode().transforms)
    checked: list[Any] = []
    for i, (out, t, made) in enumerate(zip(outs, pushed, node.outputs_made, strict=True)):
        if not isinstance(out, Tensor):
            checked.append(None)
            continue
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"{not_a_variable(t)} for grad output {i}.")
        if made.kind is CONSTANT and t is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        if made.kind is DIRTY and made.source is not None and tangents[made.source] is not None:
            _check_written(t, tangents[made.source], versions[made.source])
        elif made.kind in (GIVEN, VIEW) and t is not None and follows_views:
            _check_view(t, tangents[made.source], args[made.source])
        if t is not None:
            if t._array.dtype.kind not in "fcV":
                raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
            check_dual(out, t)
        checked.append(t)
    return tuple(checked)


def _check_written(tangent: Any, given: Any, version: Any) -> None:
    """See that the tangent of an input that forward wrote into was written into, too."""
    if tangent is None or tangent._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
            "an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(tangent: Any, given: Any, arg: Any) -> None:
    """See that the tangent of a view of an input is a view of that input's tangent."""
    view = None if tangent._extra is None else tangent._extra.view
    if view is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if view.base is not base_of(given):
        of = "the given grad input" if base_of(arg) is arg else "the same base as the given grad input"
        raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {of}.")
