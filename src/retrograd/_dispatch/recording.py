"""Autograd for operations that `__torch_dispatch__` sees: a node for a result that came from below.

A formula (`derivatives.py`) is written in public functions, so that a backward is seen, too, and can be differentiated. What
it reads of the arguments and results by name is what the node keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from .._core.arrays import Batched, levels_of
from .._core.levels import creation_numbers
from .._errors import overwritten
from .._graph.node import Node, Slot
from .._modes import current_mode, setting, using
from .._ops.phases import of_a_part
from .._places import user_place
from ..autograd._function_node import Saved
from ..ops import Vjp, numbered_node, of_node
from ..tensor import _base
from ..tensor._aliasing.views import NOWHERE, check_inplace, rebase
from ..tensor._base import edge_of, storage_of, wrap
from ..tensor._functions.generators import Generator, default_generator
from ..tensor._recording.saved import note_origin
from . import backwards, flat_tensors, hidden, redispatch, writing
from .derivatives import (
    FORMULAS,
    NO_DERIVATIVE,
    OF_COMPLEX_NUMBERS,
    Formula,
    conj,
    reading,
    reads,
    without_derivative,
    zeros_of,
)
from .kernels import ValuesNeededError
from .schemas import FunctionSchema

PACKAGE = __package__.partition(".")[0]


class OperationNode(Node):
    """The node of an operation, with a formula from `derivatives.py`."""

    op: Any
    formulas: Sequence[tuple[tuple[str, ...], Formula]]  # for which arguments
    kept: dict[str, Any]
    places: dict[str, Any]  # of each differentiable argument: the position of its edge, or those of a list
    facts: tuple[Any, ...]  # shape and dtype of what each edge leads to
    was_recorded = False  # whether its backward is in a graph: what comes later may be a part of a gradient
    saves = of_dispatch = True

    def __init__(self, op: Any) -> None:
        self.op = op
        self.seq = creation_numbers()
        self.code, self.lasti = None, 0
        self.meta = self.guard = self.extra = self._storage = None
        if (place := user_place()) is not None:
            self.code, self.lasti = place.code, place.offset

    def release(self, freed: Any) -> None:
        if any(hasattr(one, "unpack") for one in flat(self.kept.values())):  # else it can run again, as in torch
            self.kept = {}
            self.guard = freed

    def touch(self, graph: bool) -> None:
        self.check_freed()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and name[7:] in self.__dict__.get("kept", ()):
            return self.value(name[7:])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def value(self, name: str, stale: bool = False) -> Any:
        """Return what a formula reads; `stale`: even what was overwritten since."""
        kept = self.kept[name]
        if isinstance(kept, list):
            return [self._unpacked(one, stale) for one in kept]
        return self._unpacked(kept, stale)

    def _unpacked(self, kept: Any, stale: bool) -> Any:
        if stale and _was_overwritten(kept):
            return kept.tensor if type(kept.tensor) in _base.dispatch_types else wrap(kept.array)
        return kept.unpack(self) if hasattr(kept, "unpack") else kept

    def _stale(self, formula: Formula) -> list[bool]:
        """Tell of the tensors that a formula reads which of them were overwritten since."""
        kept = flat(self.kept[one] for one in reads(formula) if one in self.kept)
        return [_was_overwritten(one) for one in kept if hasattr(one, "unpack")]

    def pull_back(self, g: Any, graph: bool) -> Any:
        self.check_freed()
        is_part, self.was_recorded = self.was_recorded, self.was_recorded or current_mode().grad
        with using(autocast=None), setting(of_a_part, is_part or isinstance(self.op.overloadpacket, Vjp)):
            return self._pull_back(g, graph)

    def _pull_back(self, g: Any, graph: bool) -> Any:
        many = self.num_outputs != 1
        parts = g if many else (g,)
        grads = [None if one is None else one if graph else wrap(one) for one in parts]
        stale = [one for _, formula in self.formulas if "stale" in reads(formula) for one in self._stale(formula)]

        def read(name: str) -> Any:
            return stale if name == "stale" else self.value(name, bool(stale))

        try:
            found = gradients(self.formulas, self.places, self._edges, grads, read)
        except ValuesNeededError:
            for one in self.kept:
                self.value(one)  # raises for the one that was overwritten
            raise
        fitted = [_fitted(one, facts) for one, facts in zip(found, self.facts, strict=True)]
        return [one if one is None or graph else one._array for one in fitted]


def gradients(formulas: Any, places: dict[str, Any], edges: Any, grads: list[Any], read: Formula) -> list[Any]:
    """Return a gradient for each edge, by the formulas of an operation; `read` gives the values that these name, once each."""
    known: dict[str, Any] = {"grads": grads, "grad": grads[0]}
    found: list[Any] = [None] * len(edges)
    for names, formula in formulas:
        known["needed"] = tuple(_is_needed(places.get(name), edges) for name in names)
        if not any(known["needed"]):
            continue
        for one in reads(formula):
            if one not in known:
                known[one] = read(one)
        made = formula(*[known[one] for one in reads(formula)])
        for name, one in zip(names, made if len(names) > 1 else (made,), strict=True):
            place = places.get(name)
            if isinstance(place, int):
                found[place] = one
            elif place is not None and one is not None:
                for at, part in zip(place, one, strict=True):
                    if at >= 0:
                        found[at] = part
    return found


def flat(values: Iterable[Any]) -> list[Any]:
    """Return values, also those in lists."""
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def _is_needed(place: Any, edges: Any) -> bool:
    if place is None:
        return False
    return (
        edges[place] is not None if isinstance(place, int) else any(edges[one] is not None for one in place if one >= 0)
    )


def _fitted(grad: Any, facts: Any) -> Any:
    """Bring a gradient to the shape and dtype of what it is for, by operations that are seen."""
    if grad is None or facts is None:
        return None
    shape, dtype, levels = facts
    if extra := [one for one in levels_of(grad._array) - levels if not one.alive]:
        grad = _without_batches(grad, extra)
    if tuple(grad.shape) != shape:
        grad = sum_to(grad, shape)
    if grad.dtype != dtype:
        grad = (grad.real if grad.is_complex() and not dtype.is_complex else grad).to(dtype)
    return grad


def _without_batches(grad: Any, ended: list[Any]) -> Any:
    """Sum the gradient of what was no sample over the samples of vmaps that have ended; inside of one it is that of each sample."""
    for level in sorted(ended, key=lambda one: -one.number):
        array = grad._array
        if not isinstance(array, Batched) or array.level is not level:
            raise NotImplementedError(
                "a mode that sees samples and duals cannot follow a gradient out of these transforms"
            )
        grad = wrap(array.array).sum(0)
    return grad


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the dimensions that broadcasting has made."""
    if not shape:
        return grad.sum()
    lead = grad.dim() - len(shape)
    dims = [*range(lead)] + [k for k in range(lead, grad.dim()) if shape[k - lead] == 1 and grad.shape[k] != 1]
    if dims:
        grad = grad.sum(dims, keepdim=True)
    return grad.view(shape) if lead > 0 else grad


def _was_overwritten(kept: Any) -> bool:
    """Tell whether a tensor that was kept for a backward was written since."""
    return isinstance(kept, Saved) and kept.packed is None and kept.storage.version != kept.version


class _KeptOutput:
    """A result, kept without its node and given back with it, by `detach`, as torch shows it."""

    __slots__ = ("index", "kept")

    def __init__(self, tensor: Any, index: int) -> None:
        self.kept, self.index = _kept(tensor), index

    def unpack(self, node: Any) -> Any:
        edge = Slot(node, self.index) if node.num_outputs != 1 else node
        if _was_overwritten(self.kept):
            raise overwritten(self.kept.array, edge, self.kept.storage, self.kept.version, node.place())
        tensor = _detached(self.kept.unpack(node))
        if current_mode().grad:
            tensor._edge = edge
        return tensor


def _detached(tensor: Any) -> Any:
    """Return a tensor without its node, by an operation that is seen, but inside of transforms, where torch does it above modes."""
    if current_mode().transforms and type(tensor) not in _base.dispatch_types:
        return wrap(tensor._array, None, storage_of(tensor))
    with using(grad=False):
        return tensor.detach()


def _kept(value: Any) -> Any:
    if isinstance(value, list):
        return [_kept(one) for one in value]
    if not isinstance(value, _base.Tensor):
        return value
    saved = Saved(value, None)
    if saved.packed is None:
        saved.tensor = value  # the object itself: a trace knows it
    return saved


@cache
def _node_class(op: Any) -> Any:
    name = numbered_node(op)
    return type(name, (OperationNode,), {"__module__": __name__})


@cache
def _formulas(op: Any) -> Any:
    """Return the formulas of an operation for its arguments; None if it has no derivative."""
    name = op._overloadpacket.__name__
    if op.namespace not in ("aten", "retrograd") or name in ("detach_", "requires_grad_"):
        return None
    inner = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if name in NO_DERIVATIVE or inner in NO_DERIVATIVE:  # a write without a derivative ends that of what was there
        return [(("self",), zeros_of)] if op._schema.is_mutable else None
    found = dict(FORMULAS.get(f"{inner}.{op._overloadname}") or FORMULAS.get(inner) or {})
    if op.namespace == "aten" and (derived := backwards.formula_of(op, inner)) is not None:
        names, formula, read = derived
        found.setdefault(names if len(names) > 1 else names[0], reading(formula, read))
    if not found:
        return [_by_vjp(op)]
    listed = [((names,) if isinstance(names, str) else names, formula) for names, formula in found.items()]
    return sorted(listed, key=lambda one: one[0])  # torch's order


@cache
def _by_vjp(op: Any) -> tuple[tuple[str, ...], Formula]:
    """Return the formula of an operation that has none of its own: one operation that computes it again."""
    schema = op._schema
    names = tuple(one.name for one in schema.arguments if one.type.startswith("Tensor"))
    vjp = import_module(f"{PACKAGE}.ops").vjp_of(op)

    def of_all(grads: Any, needed: Any, drawing: Any, stale: Any, *values: Any) -> Any:
        if drawing is not None and any(getattr(one, "sees_samples", False) for one in current_mode().dispatch_modes):
            raise NotImplementedError(
                f"make_fx: the backward of {op} is for the numbers that it drew, so it cannot be recorded"
            )
        arrived = [one for one in grads if one is not None]
        which = [one is not None for one in grads]
        found = run(vjp, [arrived, which, list(needed), drawing, stale if any(stale) else [], *values], {})
        made = iter(found)
        result = []
        for argument, value in zip(schema.arguments, values, strict=True):
            if argument.name in names:
                given = value if isinstance(value, (list, tuple)) else [value]
                parts = [next(made) if isinstance(one, _base.Tensor) else None for one in given]
                result.append(parts if isinstance(value, (list, tuple)) else parts[0])
        return result if len(names) > 1 else result[0]

    return names, reading(of_all, ("grads", "needed", "drawing", "stale", *[one.name for one in schema.arguments]))


def run(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation below autograd, and give what came of it its place in the graph."""
    mode = current_mode()
    if op.namespace not in ("aten", "retrograd") and mode.tracks:
        return _of_program(op, args, kwargs)
    schema: FunctionSchema = op._schema
    inputs = flat_tensors((*args, *kwargs.values()))
    written = _written(schema, args, kwargs)
    formulas = _formulas(op) if mode.tracks else None
    tracked = formulas is not None and any([one.requires_grad for one in inputs])
    if written and mode.tracks:
        for one in written:
            check_inplace(one, tuple(x for x in inputs if x is not one))
    if tracked and formulas and any([one.is_complex() for one in inputs]):
        name = op._overloadpacket.__name__
        formulas = formulas if name.removesuffix("_") in OF_COMPLEX_NUMBERS else [_by_vjp(op)]
    node = _prepared(op, schema, formulas, args, kwargs, written) if tracked else None
    before = default_generator.get_state() if node is not None and "drawing" in node.kept else None
    if not mode.grad and mode.autocast is None:
        out = redispatch(op, args, kwargs)
    else:
        with using(grad=False, autocast=None):
            out = redispatch(op, args, kwargs)
    if node is not None and before is not None:
        node.kept["drawing"] = _drawn_from(before)
    if written:
        out = writing.written_arguments(schema, args, kwargs, out)
    writing.note_views(op, args, kwargs, out, mode)
    return out if node is None else _connected(node, op, out, inputs, written)


def _drawn_from(state: Any) -> Any:
    """Return a generator in the state from which an operation drew random numbers; None if it drew none."""
    if np.array_equal(state._array, default_generator.get_state()._array):
        return None
    return Generator().set_state(state)


def _of_program(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation of a program, with the derivative that was registered for it."""
    from .programs import find

    operation = find(op.name())
    values = operation.bound(args, kwargs)
    if operation.mutates:
        with using(grad=False):
            return redispatch(op, args, kwargs)
    return operation.recorded(values)


def _written(schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    if not schema.is_mutable:
        return []
    found = []
    for k, one in enumerate(schema.arguments):
        if one.is_write:
            value = args[k] if k < len(args) else kwargs.get(one.name)
            found += flat_tensors((value,))
    return found


def _prepared(
    op: Any, schema: FunctionSchema, formulas: Any, args: Sequence[Any], kwargs: dict[str, Any], written: Any,
    of_first: Any = None,
) -> OperationNode:  # fmt: skip
    """Make the node before the operation runs: with the edges of its arguments, and what its formulas read of them.

    `of_first` is the edge of the first argument, where it is not the one that the tensor has now.
    """
    node: OperationNode = _node_class(op)(op)
    values = {one.name: one.default_value for one in schema.arguments}
    values.update(zip(values, args, strict=False))
    values.update(kwargs)
    edges: list[Any] = []
    facts: list[Any] = []
    node.places = {}

    def add(tensor: Any) -> int:
        edge = edge_of(tensor) if tensor._array.dtype.kind in "fcV" else None
        edge = of_first if of_first is not None and not edges else edge
        edges.append(edge)
        facts.append(None if edge is None else (tuple(tensor.shape), tensor.dtype, levels_of(tensor._array)))
        return len(edges) - 1

    for argument in schema.arguments:
        value = values[argument.name]
        if isinstance(value, _base.Tensor):
            node.places[argument.name] = add(value)
        elif argument.type.startswith("Tensor") and isinstance(value, (list, tuple)):
            node.places[argument.name] = [add(one) if isinstance(one, _base.Tensor) else -1 for one in value]
    node._edges, node.facts = tuple(edges), tuple(facts)
    covered = {name for names, _ in formulas for name in names}
    if any(_is_needed(place, edges) for name, place in node.places.items() if name not in covered):
        formulas = [_by_vjp(op)]
    node.formulas = [
        (names, one) for names, one in formulas if any(_is_needed(node.places.get(n), edges) for n in names)
    ]
    node.kept = {}
    written_names = {one.name for one in schema.arguments if one.is_write and values[one.name] is not None}
    for _, formula in node.formulas:
        for name in reads(formula):
            if name in values and name not in node.kept:
                value = values[name]
                if name in written_names:
                    value = value.clone()
                elif isinstance(value, Generator):
                    value = value.clone_state()
                node.kept[name] = _kept(list(value) if isinstance(value, (list, tuple)) else value)
            elif name == "drawing":
                node.kept[name] = None
            elif name.endswith("_sizes"):
                value = values[name[:-6]]
                node.kept[name] = [0] if value is None else list(value.shape)
            elif name.endswith("_strides"):
                node.kept[name] = list(values[name[:-8]].stride())
            elif name == "self_offset":
                node.kept[name] = values["self"].storage_offset()
            elif name.endswith("_options"):
                one = values[name[:-8]]
                node.kept[name] = {"dtype": one.dtype, "device": one.device}
    return node


def node_of(op: Any, args: Sequence[Any], kwargs: dict[str, Any], of_first: Any) -> OperationNode:
    """Make the node of an operation that does not run, with an edge for its first argument."""
    node = _prepared(op, op._schema, _formulas(op), args, kwargs, (), of_first)
    node.num_outputs = 1
    return node


def _connected(node: OperationNode, op: Any, out: Any, inputs: Any, written: Any) -> Any:
    many = isinstance(out, (list, tuple))
    outputs = list(out) if many else [out]
    node.num_outputs = len(outputs) if many else 1
    name = op._overloadpacket.__name__
    differs = [_is_differentiable(one) and not without_derivative(name, node.kept, k) for k, one in enumerate(outputs)]
    for _, formula in node.formulas:
        for name in reads(formula):
            if name.startswith("result") and name not in node.kept:
                at = int(name[6:] or 0)
                if differs[at]:
                    node.kept[name] = _KeptOutput(_detached(outputs[at]), at)
                else:
                    node.kept[name] = _kept(outputs[at])
    if current_mode().anomaly:
        made, given = (tuple(one._array for one in flat_tensors(values)) for values in (outputs, inputs))
        note_origin(node, made, given, current_mode())
    for at, one in enumerate(outputs):
        if not differs[at]:
            continue
        if any(one is x for x in written):
            rebase(one, Slot(node, at) if node.num_outputs > 1 else node)
            continue
        held = _base._edge_slot.__get__(one)
        if held is not None and held is not NOWHERE:  # one of the arguments, or what somebody else made
            with using(grad=False):
                one = outputs[at] = one.detach()
        one._edge = Slot(node, at) if node.num_outputs > 1 else node
    return type(out)(outputs) if many and not hasattr(out, "_fields") else type(out)(*outputs) if many else outputs[0]


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, _base.Tensor) and value._array.dtype.kind in "fcV"


def accumulate(leaf: Any, grad: Any) -> None:
    """Add a gradient to `.grad` of a leaf by operations that are seen, as torch does."""
    extra = leaf._need_extra()
    held = extra.grad
    if held is None:
        extra.grad = grad if current_mode().grad else _taken(leaf, grad)
    elif current_mode().grad:
        extra.grad = held + grad
    else:
        held.add_(grad)


def _taken(leaf: Any, grad: Any) -> Any:
    """Return a first gradient for a leaf: as it is, or copied to memory in the order of the leaf's."""
    steps = zip(leaf.shape, leaf.stride(), grad.stride(), strict=True)
    if all(n == 1 or own == other for n, own, other in steps):
        return grad.detach()
    options = {"dtype": grad.dtype, "layout": grad.layout, "device": grad.device}
    new = import_module(f"{PACKAGE}.ops").aten.new_empty_strided.default
    return new(grad, list(leaf.shape), list(leaf.stride()), **options).copy_(grad)


def pull_back_plain(node: Any, g: Any, mask: Any) -> Any:
    """Run the backward of a node that was recorded where nothing was seen: by its operation's formula, or unseen."""
    found = None if g is None else _by_formula(node, g)
    if found is not None:
        return found
    if any(type(one) in _base.dispatch_types for one in flat_tensors((g,))):
        raise NotImplementedError(
            f"{type(g).__name__}: a gradient of a class with __torch_dispatch__ came to {type(node).__name__}, whose operation was "
            "recorded on plain tensors and has no formula in torch's operations"
        )
    with hidden():
        return node.pull_back(g, True) if mask is None else node.pull_back_some(g, True, mask)


# Primitives of which each is one of torch's operations, under the node's name: by their formulas gradients of wrapper classes pass.
AS_ONE = frozenset({"permute_dims", "reshape", "broadcast_to", "expand_dims", "squeeze", "getitem", "negative", "copy"})


def _of_linear(node: Any, g: Any, has_bias: bool) -> Any:
    """Return the gradients of a linear layer, which is one node here and several in torch."""
    node.check_saved()
    names = ("bias", "x", "weight") if has_bias else ("x", "weight")
    edges = dict(zip(names, node._edges, strict=True))
    x, weight = (node.saved_tensor(one) for one in node.primitive.inputs[-2:])
    found = dict.fromkeys(names)
    flat = g.reshape(-1, g.shape[-1])
    if edges["x"] is not None:
        made = flat.mm(conj(weight))
        found["x"] = made if g.dim() == 2 else made.reshape([*g.shape[:-1], weight.shape[1]])
    if edges["weight"] is not None:
        found["weight"] = flat.t().mm(conj(x.reshape(-1, x.shape[-1])))
    if has_bias and edges["bias"] is not None:
        found["bias"] = flat.sum(0)
    return list(found.values())


class _NotSavedError(Exception):
    """A formula reads what a node has not kept."""


def _by_formula(node: Any, g: Any) -> Any:
    """Return the gradients of a node by the formula of its operation; None if there is none, or it reads what the node has not."""
    primitive = None if node.primitive is None else node.primitive.name
    if primitive in ("linear_map", "affine"):
        return _of_linear(node, g, primitive == "affine")
    op = of_node(type(node).__name__)
    name = op.overloadpacket.__name__
    wrapped = any(type(one) in _base.dispatch_types for one in flat_tensors((g,)))
    is_known = (
        (primitive == "matmul" and name in ("mm", "bmm")) or name == "convolution" or (wrapped and primitive in AS_ONE)
    )
    if not is_known or op._overloadname not in op.overloadpacket._forms():
        return None
    if name not in OF_COMPLEX_NUMBERS and any(one.is_complex() for one in flat_tensors((g,))):
        return None
    if primitive == "broadcast_to":
        return [sum_to(g, tuple(node._saved_self_sym_sizes))]
    arguments, formulas = op._schema.arguments, _formulas(op)
    places = range(len(node._edges)) if node.visible is None else node.visible
    names = [one.name for one in arguments if one.type.startswith("Tensor")]
    where = dict(zip(names, places, strict=False))
    if len(names) != len(places) or formulas is None or any("[" in one.type for one in arguments if one.name in where):
        return None
    defaults = {one.name: one.default_value for one in arguments if not one.required}

    def read(name: str) -> Any:
        saved = f"_saved_{name.removesuffix('_sizes')}_sym_sizes" if name.endswith("_sizes") else f"_saved_{name}"
        saved = saved if hasattr(node, saved) else f"{saved}_opt"
        if not hasattr(node, saved):
            if name not in defaults:
                raise _NotSavedError
            return defaults[name]
        value = getattr(node, saved)
        value = value - (1 << 64) if type(value) is int and value >= 1 << 63 else value
        return list(value) if isinstance(value, tuple) else value

    try:
        return gradients(formulas, where, node._edges, list(g) if isinstance(g, tuple) else [g], read)
    except _NotSavedError:
        return None
