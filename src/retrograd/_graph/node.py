"""The graph: a Node per recorded operation.

Note [Edges]
A node's `edges` say where the gradient of each input goes: None (nowhere), a Node (its only output), a Slot (one of
several outputs), or a leaf Tensor itself. The graph thus owns its leaves and nothing points back: there are no cycles,
and `AccumulateGrad` exists only as a face for `next_functions`.

Note [Saved values]
Rule 1. A value a rule reads is an attribute of the node, under the name the rule gives it. It is a raw array: no Tensor,
        no graph. Its graph edge "as it was" is the node's edge for that input, or the node itself for an output.
Rule 2. A Tensor gets its Storage (the version counter) only when somebody needs it. If it had one when it was saved, the
        node's guard holds (storage, version). If it had none, it was at version 0, and the Storage it may get later is
        registered with the node (or is found on the leaf) that its edge names.
Rule 3. So an operation on fresh tensors pays nothing for the version check, and backward pays one look per edge.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import _errors
from .._core import primitive as core
from .._core.arrays import NO_LEVELS, LevelArray
from .._core.levels import creation_numbers
from .._core.numpy_namespace import _NUMPY_TYPES, SINGLE, cast, is_half, numpy_namespace, raw_namespace
from .._core.primitive import ELEMENTWISE, Primitive, vocabulary
from .._core.shown import OURS, given
from .._ops.levels import add_levels
from .._places import describe, user_frame
from .faces import InputMetadata, input_metadata, names_of
from .guards import Freed as Freed
from .guards import Guard as Guard
from .guards import Packed as Packed
from .guards import fresh
from .hot_backward import hot_methods
from .unpacked import SavedTensor, computing_with_unpacked, indices_given_back, output_edge, raw, settled, unpacked
from .unpacked import pack_value as pack_value

# exact types: numpy.float64 is a subclass of float, but an array value here
PYTHON_SCALARS: set[type] = {
    bool,
    int,
    float,
    complex,
}  # and what stands for such numbers while `torch.compile` records
NDARRAY = np.ndarray
# torch's own names for the classes that are written by hand in C++
QUALIFIED = frozenset({"AccumulateGrad", "CopyBackwards", "CopySlices", "NotImplemented"})


class NodeExtra:
    """What few nodes have: hooks, users' metadata, a traceback."""

    __slots__ = ("hooks", "made_nan", "metadata", "parent", "pre_hooks", "retained", "stands", "tensor_hooks", "traceback")  # fmt: skip

    def __init__(self) -> None:
        self.hooks: OrderedDict[int, Any] | None = None
        self.pre_hooks: OrderedDict[int, Any] | None = None
        self.tensor_hooks: dict[int, Any] | None = None  # slot -> ordered dict of hooks
        self.retained: dict[int, Any] | None = None  # slot -> weak reference to the tensor
        self.metadata: dict[Any, Any] | None = None
        self.stands: Any = None  # where the output stands in the graph, while a CopySlices runs this node
        self.traceback: Any = None
        self.parent: Any = None  # the node in whose backward this one was made, under anomaly detection
        self.made_nan = False  # anomaly detection saw NaN in the output, and none in the inputs


class Slot:
    """One output of a node with several."""

    __slots__ = ("_storage", "index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self._storage: Any = None


class InputFacts:
    """Shape, dtype and levels of what a gradient flows back to."""

    __slots__ = ("dtype", "levels", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any, levels: frozenset[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.levels = levels


class Meta:
    """Facts about inputs and outputs, for nodes whose gradients need more than the rule gives."""

    __slots__ = ("complex", "ended", "inputs", "loses_levels", "out_levels", "outputs", "rule_levels", "special")

    def __init__(self, inputs: tuple[InputFacts | None, ...], out_levels: frozenset[Any], is_complex: bool) -> None:
        self.inputs = inputs
        self.out_levels = out_levels
        self.rule_levels = out_levels  # of the gradients that the rules return, before the edge removes some
        self.ended = NO_LEVELS  # of duals among the operands: the output is computed from their primals
        self.loses_levels = False  # an input has levels that the output lacks, besides the one that is left
        self.complex = is_complex
        self.special = bool(is_complex or out_levels)  # more than shapes and dtypes to settle
        self.outputs: tuple[InputFacts, ...] = ()


class PackedMeta(Meta):
    """Facts noted only because hooks hold saved values, and may give back others: without hooks there would be none."""

    __slots__ = ()


class Node:
    """A recorded operation. See Note [Edges] and Note [Saved values]."""

    __slots__ = ("__weakref__", "_edges", "_storage", "code", "extra", "guard", "lasti", "meta", "seq")

    # Of the class of a primitive, see `node_class`.
    primitive: Primitive | None = None
    rules: tuple[Any, ...] = ()
    array_names: tuple[str, ...] = ()  # saved arrays, in the order of inputs, then "out"
    unguarded: frozenset[str] = (
        frozenset()
    )  # saved, but not read by a plain backward: a write into them is nothing to it
    static_names: tuple[str, ...] = ()
    input_of: dict[str, int] = {}  # noqa: RUF012 - replaced by every subclass
    num_outputs = 1
    hooked_outputs: int | None = None  # how many gradients hooks see; None: all
    visible: tuple[int, ...] | None = None  # positions of the edges torch shows; None: all
    turned: int | None = None  # position of an input that torch transposes by a node of its own, which is shown
    takes_mask = False  # whether there is a `pull_back_some`, which can be told what is not needed
    saves = False  # whether there is anything to release
    keeps_shapes = False  # both operands are saved when both need gradients: shapes are compared in backward
    hidden = False  # stands for "no edge" in `next_functions`
    stands_for_leaf = False  # a saved leaf that hooks gave back: torch shows no node
    of_dispatch = False  # its backward is seen, see Note [Below autograd] in `_dispatch/__init__.py`
    makes_gradients = False  # in new memory, see Note [Who owns a gradient] in `autograd/engine.py`
    # graphs: where it has no gradient for an edge, no way leads there from the results that have one
    holds_several = False
    runs_without_gradient = False  # a custom Function that does not materialize is called even for no gradient

    _edges: tuple[Any, ...]
    _storage: Any  # of the output, once it has one
    seq: int
    code: Any
    lasti: int
    meta: Meta | None
    guard: Any
    extra: NodeExtra | None

    if TYPE_CHECKING:  # subclasses are made at run time, with a slot for each name their rules read

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    # ---- torch's face ----
    def name(self) -> str:
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in QUALIFIED else name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        faces = [face_of(edge) for edge in self._edges]
        if (turned := self.turned) is not None and self._edges[turned] is not None:
            faces[turned] = (transposition(self._edges[turned]), 0)
        return tuple(self.shown_of(faces))

    def shown_of(self, values: Any) -> Any:
        """Choose, of one value for each edge, those of the edges that torch has too."""
        return values if self.visible is None else [values[i] for i in self.visible]

    @property
    def metadata(self) -> dict[Any, Any]:
        extra = self.need_extra()
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    def _sequence_nr(self) -> int:
        return self.seq

    def _set_sequence_nr(self, number: int) -> None:
        if not isinstance(number, int):
            raise TypeError("an integer is required")
        self.seq = number

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return input_metadata(self)

    def __dir__(self) -> list[str]:
        return names_of(self)

    def need_extra(self) -> NodeExtra:
        if self.extra is None:
            self.extra = NodeExtra()
        return self.extra

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after this node ran; it may return new grad_inputs."""
        from ..autograd.graph import RemovableHandle

        extra = self.need_extra()
        extra.hooks = OrderedDict() if extra.hooks is None else extra.hooks
        return RemovableHandle.add(extra.hooks, hook)

    def register_prehook(self, hook: Any) -> Any:
        """Call `hook(grad_outputs)` before this node runs; it may return new grad_outputs."""
        from ..autograd.graph import RemovableHandle

        extra = self.need_extra()
        extra.pre_hooks = OrderedDict() if extra.pre_hooks is None else extra.pre_hooks
        return RemovableHandle.add(extra.pre_hooks, hook)

    def _register_hook_dict(self, hooks: OrderedDict[int, Any]) -> None:
        self.need_extra().pre_hooks = hooks

    def __call__(self, *grads: Any) -> Any:
        """Apply the backward of this one node to Tensors."""
        from ..autograd.engine import call_node

        return call_node(self, grads)

    # ---- places ----
    def place(self) -> str | None:
        return None if self.code is None else describe(self.code, self.lasti)

    # ---- making nodes off the hot path ----
    def begin(self, edges: tuple[Any, ...], of_user: bool = True) -> Self:
        """Give a new node its edges and its number, and nothing else; `of_user`: also the user's line."""
        self._edges = edges
        self.seq = creation_numbers()
        self.meta = self.guard = self.extra = self._storage = None
        self.code, self.lasti = None, 0
        if of_user:
            frame = user_frame(sys._getframe(1))
            self.code, self.lasti = frame.f_code, frame.f_lasti
        return self

    # ---- saved values ----
    def storage_now(self, name: str) -> Any:
        """Return the Storage that a value saved without one may have got since. See Note [Saved values]."""
        if name == "out":
            storage = self._storage
            return storage if storage is None or storage.real is None else storage.real
        edge = self._edges[self.input_of[name]]
        return None if edge is None else edge._storage

    def touch(self, graph: bool) -> None:
        """Unpack the saved values of a node that runs but computes nothing, for torch's errors and hooks."""
        if self.primitive is not None and self.array_names:
            self.check_saved()
            self.values(graph)

    def check_freed(self) -> None:
        """Raise torch's error if saved values were freed."""
        if type(self.guard) is Freed:
            raise _errors.freed(self.guard.place)

    def check_saved(self, names: tuple[str, ...] | None = None) -> None:
        """Raise torch's errors if saved values were freed or overwritten."""
        guard = self.guard
        if guard is not None and type(guard) is Freed:
            raise _errors.freed(guard.place)
        versions: dict[str, Any] = {} if guard is None else guard.versions
        for name in self.array_names if names is None else names:
            if getattr(self, name) is None or (guard is not None and name in guard.packed):
                continue  # what hooks hold is theirs to guard
            if name in self.unguarded and names is None:
                continue
            if name in versions:
                entries = versions[name]
                for at, (storage, version) in enumerate(entries if isinstance(entries, list) else (entries,)):
                    if storage is not None and storage.detached is not None and name != "out" and names is None:
                        self._check_detached(name, storage)
                    if storage is not None and storage.version != version:
                        self._raise_overwritten(name, storage, version, at, names is not None)
            else:
                storage = self.storage_now(name)
                if storage is not None and storage.version == -1 and names is not None:
                    storage = storage.real  # detached: only backward complains
                if storage is not None and storage.version != 0:
                    self._raise_overwritten(name, storage, 0, 0, names is not None)

    def _lost(self, name: str, storage: Any) -> bool:
        """Tell whether `detach_` has taken the edge of a saved input away."""
        value = getattr(self, name)
        if storage.detached is None or name == "out" or isinstance(value, tuple):
            return False
        edge = self._edges[self.input_of[name]]
        if storage.detached is edge:
            return True
        owner = None if storage.owner is None else storage.owner()  # of writes between
        return isinstance(edge, Node) and owner is not None and (owner._array is value or isinstance(value, np.generic))

    def _check_detached(self, name: str, storage: Any) -> None:
        if self._lost(name, storage):
            raise RuntimeError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
                "supported, please use out-of-place `.detach()` instead"
            )

    def _raise_overwritten(self, name: str, storage: Any, version: int, at: int = 0, reading: bool = False) -> None:
        value = getattr(self, name)
        if not reading:
            self._check_detached(name, storage)
        producer: Any = self if name == "out" else self._edges[self.input_of[name]]
        if isinstance(value, tuple):  # indices, which have no node
            value, producer = value[min(at, len(value) - 1)], None
        if self._lost(name, storage):
            value, producer = storage.now(value, None)
            producer = self if producer is None else producer
        elif name != "out" or producer is None:
            value, producer = storage.now(value, producer)
        else:
            producer = storage.view_edge(value, producer, version)
        raise _errors.overwritten(value, producer, storage, version, self.place())

    def values(self, graph: bool) -> Any:
        """Return what the rules read: this node itself, or its saved values as Tensors or unpacked by hooks."""
        guard = self.guard
        if not graph and (guard is None or (type(guard) is Guard and not guard.packed)):
            return self
        if type(guard) is Freed:
            raise _errors.freed(guard.place)
        values = SimpleNamespace()
        for name in self.static_names:
            setattr(values, name, getattr(self, name))
        for name in self.array_names:
            value = self.saved_tensor(name)
            if name == "indices" and isinstance(value, tuple):
                value, values.layout = indices_given_back(value, self, values.layout)
            if not graph:
                value = tuple(map(raw, value)) if isinstance(value, tuple) else raw(value)
            setattr(values, name, value)
        return values

    def saved_tensor(self, name: str) -> Any:
        """Return a saved value as a Tensor that stands where it stood in the graph."""
        guard = self.guard
        if type(guard) is Freed:
            raise _errors.freed(guard.place)
        if guard is not None and name in guard.packed:
            packed = guard.packed[name]
            if isinstance(packed, tuple):
                return tuple(
                    self._unpack(p, None) if type(p) is Packed else p if p is None else wrap(p) for p in packed
                )
            return self._unpack(packed, name)
        value = getattr(self, name)
        if value is None or type(value) in PYTHON_SCALARS:
            return value
        if name == "out":
            if isinstance(value, tuple):
                return tuple(v if v is None else wrap(v, None, None) for v in value)  # only indices are saved
            return wrap(value, output_edge(self), self._stored(name))
        if isinstance(value, tuple):
            return tuple(wrap(v, None, None) for v in value)
        edge = self._edges[self.input_of[name]]
        if edge is not None and not isinstance(edge, (Node, Slot)):  # a leaf
            return edge if edge._array is value else wrap_leaf_alias(edge, value)
        return wrap(value, edge, self._stored(name))

    def _stored(self, name: str) -> Any:
        if self.guard is not None and name in self.guard.versions:
            entry = self.guard.versions[name]
            if isinstance(entry, list):  # of a dual: its own, and that of its tangent
                entry = entry[0]
            return new_storage() if entry[0] is None else entry[0]  # none: a copy that an in-place operation kept
        return self.storage_now(name)

    def _unpack(self, packed: Packed, name: str | None) -> Any:
        edge = None if name is None else output_edge(self) if name == "out" else self._edges[self.input_of[name]]
        tensor = unpacked(packed, edge is not None and name != "out")
        if edge is not None and not isinstance(edge, (Node, Slot)):  # a leaf
            return wrap_leaf_alias(edge, tensor._array)
        return wrap(tensor._array, edge, storage_of(tensor))  # not the versions of what stood there

    def release(self, freed: Freed) -> None:
        """Let go of saved values; a later use says where that happened."""
        for name in self.array_names:
            setattr(self, name, None)
        self.guard = freed

    # ---- the backward of a primitive ----
    def straight(self, g: Any, freed: Freed | None, mine: bool = False) -> Any:
        """Return edges with their gradients as arrays; None where a user's function is called.

        Saved values are let go, unless `freed` is None. `mine`: nobody else has the gradient, which may be overwritten.
        """
        if self.extra is not None or not self.makes_gradients or getattr(self.guard, "packed", None):
            return None
        grads = self.pull_back(g, False)
        if freed is not None and self.saves:
            self.release(freed)
        if self.meta is not None:
            grads = fit_all(self, grads, NO_LEVELS)
        if self.extra is not None:  # hooks that came while the node computed
            grads = run_late_hooks(self, grads)
        return [*zip(self._edges, grads)]  # noqa: B905 - the keyword costs 100 ns

    def pull_back_some(self, g: Any, graph: bool, mask: Any = None) -> Any:
        """Return the gradients of the inputs (None where not needed) for the gradient of the output.

        `mask` has the edges, with None in the place of those to which no gradient need go.
        """
        if self.array_names and not fresh(self):
            self.check_saved()
        if self.keeps_shapes and self.meta is None:
            self.meta = self._seen_shapes()
        values = self.values(graph) if graph or self.guard is not None else self
        if self.guard is None or not self.guard.packed:
            return self._by_rules(g, graph, mask, values)
        with computing_with_unpacked(self):
            return settled(self, g, self._by_rules(g, graph, mask, values))

    def pull_back(self, g: Any, graph: bool) -> Any:
        """Do so for all inputs."""
        return self.pull_back_some(g, graph)

    def _by_rules(self, g: Any, graph: bool, mask: Any, values: Any) -> Any:
        edges = self._edges if mask is None else mask
        meta = self.meta
        if meta is not None and meta.ended:
            g = tuple([add_levels(part, meta.ended) for part in g]) if type(g) is tuple else add_levels(g, meta.ended)
        xp = vocabulary if graph or (meta is not None and meta.out_levels) else gradient_namespace(g)
        primitive: Any = self.primitive
        if primitive.group_rule is not None:
            return primitive.group_rule.call(xp, g, _with_needed(self, edges, values))
        elementwise, plain = primitive.kind == ELEMENTWISE, xp is numpy_namespace and type(g) is NDARRAY
        if plain and elementwise and primitive.large_backward.takes(g) and (meta is None or not meta.complex):
            return primitive.large_backward(values, g, edges)
        if plain and not elementwise and primitive.plain_rules and (meta is None or type(meta) is PackedMeta):
            return self._by_plain_rules(g, edges, values)
        if (
            primitive.widens
            and not primitive.reads_halves
            and xp is numpy_namespace
            and meta is not None
            and _are_halves(meta)
        ):
            g, values = _widened(g), _Widened(values)
        conjugate = elementwise and meta is not None and meta.complex and not primitive.self_adjoint
        if conjugate:
            g = xp.conj(g)
        grads = []
        for edge, rule in zip(edges, self.rules):  # noqa: B905 - the keyword costs 100 ns
            grads.append(None if edge is None or rule is None else rule.call(xp, g, values))
        if conjugate:
            some = vocabulary if xp is vocabulary else gradient_namespace(g)
            return [grad if grad is None else some.conj(grad) for grad in grads]
        return grads

    def _by_plain_rules(self, g: Any, edges: Any, values: Any) -> list[Any]:
        """Compute to the bit what the straight backward does, as a checkpoint must."""
        grads: list[Any] = []
        for edge, rule, name in zip(edges, self.rules, self.primitive.inputs, strict=True):  # type: ignore[union-attr]
            plain = self.primitive.plain_rules.get(name)  # type: ignore[union-attr]
            if edge is None or rule is None:
                grads.append(None)
            elif plain is None:
                grads.append(rule.call(numpy_namespace, g, values))
            else:
                grads.append(plain(g, *[getattr(values, one) for one in rule.names]))
        return grads

    def _seen_shapes(self) -> Meta | None:
        """Compare the shapes of saved operands, which the hot path of forward did not do."""
        x, y = self.x, self.y
        shapes = getattr(x, "shape", None), getattr(y, "shape", None)
        if None in shapes or shapes[0] == shapes[1]:
            return None
        facts = (InputFacts(x.shape, x.dtype, NO_LEVELS), InputFacts(y.shape, y.dtype, NO_LEVELS))
        return Meta(facts, NO_LEVELS, False)


def _are_halves(meta: Meta) -> bool:
    """Tell whether the inputs are of half precision; what hooks give back of others is computed with as it is, as in torch."""
    return all(facts is None or is_half(facts.dtype) for facts in meta.inputs)


def _widened(value: Any) -> Any:
    return cast(value, SINGLE) if isinstance(value, NDARRAY | np.generic) and is_half(value.dtype) else value


class _Widened:
    """Saved values as rules read them where half precision is computed in float32; edges round the gradients."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return _widened(getattr(self._values, name))


def _with_needed(node: Node, edges: Any, values: Any) -> Any:
    read = SimpleNamespace(needed=tuple(edge is not None for edge in edges))
    for name in node.primitive.group_rule.names:  # type: ignore[union-attr]
        if name != "needed":
            setattr(read, name, getattr(values, name))
    return read


def gradient_namespace(g: Any) -> Any:
    """Choose `xp` by the gradient alone; right where the saved values are raw."""
    if type(g) in _NUMPY_TYPES:
        return numpy_namespace
    if type(g) is tuple:
        g = next((part for part in g if part is not None), None)
        if type(g) in _NUMPY_TYPES or g is None:
            return numpy_namespace
    if isinstance(g, (LevelArray, core.tensor_type)):
        return vocabulary
    return raw_namespace(g)


def _is_hidden(edge: Any) -> bool:
    return isinstance(edge, Node) and edge.hidden


def face_of(edge: Any) -> tuple[Any, int]:
    """Return an edge as torch shows it in `next_functions`."""
    if edge is None:
        return (None, 0)
    if isinstance(edge, Node):
        if edge.stands_for_leaf:
            return face_of(edge._edges[0])
        return (None, 0) if edge.hidden else (edge, 0)
    if type(edge) is Slot:
        return (edge.node, edge.index)
    return (accumulator_of(edge), 0)


def transposition(edge: Any) -> Node:
    """Return the node that torch has between a product and a matrix that it takes transposed."""
    node = node_class(core.primitives["permute_dims"], "TBackward0")().begin((edge,), of_user=False)
    node.axes = (1, 0)
    return node


# ---- node classes of primitives ----
_classes: dict[tuple[str, str | None], type[Node]] = {}


def default_node_name(torch_name: str) -> str:
    """Return torch's class name for an operation: log_softmax -> LogSoftmaxBackward0."""
    return "".join(part.capitalize() for part in torch_name.split("_") if part) + "Backward0"


def node_class(primitive: Primitive, name: str | None = None) -> type[Node]:
    """Return the Node class of a primitive under a torch name, made on first use."""
    found = _classes.get((primitive.name, name))
    if found is None:
        full = name or default_node_name(primitive.torch)
        found = _classes.get((primitive.name, full)) or _make_node_class(primitive, full)
        _classes[primitive.name, name] = _classes[primitive.name, full] = found
    return found


def _make_node_class(primitive: Primitive, name: str) -> type[Node]:
    rules = tuple(primitive.rules.get(i) for i in primitive.inputs)
    every = [r for r in (*rules, primitive.group_rule) if r is not None]
    names = dict.fromkeys(n for rule in every for n in rule.names if n != "needed")
    arrays = tuple(n for n in (*primitive.inputs, "out") if n in names)
    statics = tuple(n for n in names if n not in arrays)
    slots = {"x", "y", "z", "out"} | set(names) if primitive.kind == ELEMENTWISE else set(names)
    if primitive.outputs != 1 or primitive.variadic:
        slots |= {"num_outputs"}
    if primitive.kind != ELEMENTWISE:
        slots |= {"shown"}
    known = primitive.names_shown(name, names, given)
    if known is None:
        known = {OURS.get(n, n): n for n in (*arrays, *statics) if not n.endswith(("_dtype", "_shape"))}
    # the order in which torch saves, which hooks see
    order = [ours for _, ours in sorted(known.items()) if ours in arrays and ours != "out"]
    arrays = (*order, *(n for n in arrays if n not in order))
    body: dict[str, Any] = {
        "__slots__": tuple(sorted(slots)),
        "primitive": primitive,
        "rules": rules,
        "array_names": arrays,
        "static_names": statics,
        "input_of": {n: i for i, n in enumerate(primitive.inputs)},
        "readers": {n: tuple(i for i, rule in enumerate(rules) if rule is not None and n in rule.names) for n in names},
    }
    if primitive.turned is not None:
        body["turned"] = primitive.inputs.index(primitive.turned)
    body["takes_mask"] = body["makes_gradients"] = True
    body["saves"] = bool(arrays)
    elementwise = primitive.kind == ELEMENTWISE
    body["keeps_shapes"] = elementwise and "x" in arrays and "y" in arrays and len(rules) == 2
    if primitive.group_rule is None and not primitive.variadic and primitive.rest is None and primitive.outputs == 1:
        body |= hot_methods(primitive, rules, arrays, Node.straight)
    body["visible"] = _visible(primitive, name, rules)
    if primitive.outputs != 1:
        body["hooked_outputs"] = 1  # the others are indices
    return type(name, (Node,), body | saved_properties(known, arrays))


def saved_properties(known: dict[str, Any], arrays: tuple[str, ...]) -> dict[str, property]:
    """Make the `_saved_*` of a class. See Note [What torch shows] in `_core/shown.py`."""
    made = {f"_saved_{name}": _saved_property(ours) for name, ours in known.items()}
    return made | {f"_raw_saved_{name}": _raw_saved_property(ours) for name, ours in known.items() if ours in arrays}


def _visible(primitive: Primitive, name: str, rules: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return the positions of the inputs that torch counts as differentiable, or None for all."""
    if name in primitive.shown_edges:
        return primitive.shown_edges[name]
    if primitive.variadic or primitive.group_rule is not None or (None not in rules and primitive.rest is None):
        return None
    return tuple(i for i, rule in enumerate(rules) if rule is not None)


def _saved_property(name: Any) -> property:
    def read(self: Node) -> Any:
        if callable(name):
            value = name(self)
            return wrap(value) if hasattr(value, "ndim") and not isinstance(value, core.tensor_type) else value
        if name in self.array_names:
            readers = self.readers[name]
            several = len(self._edges) > 1
            if readers and all((e := self._edges[i]) is None or (several and _is_hidden(e)) for i in readers):
                return None  # never saved
            if type(self.guard) is Freed:
                raise _errors.freed(self.guard.place)
            if getattr(self, name, None) is not None:
                self.check_saved((name,))
            value = self.saved_tensor(name)
            return wrap(np.asarray(value)) if type(value) in PYTHON_SCALARS else value  # torch wraps numbers
        return getattr(self, name)

    return property(read)


def _raw_saved_property(name: str) -> property:
    return property(lambda self: SavedTensor.of(self, name))


# ---- installed by the tensor layer ----
wrap: Any = None
wrap_leaf_alias: Any = None
new_storage: Any = None
storage_of: Any = None
accumulator_of: Any = None
fit_all: Any = None
run_late_hooks: Any = None


def install(**functions: Any) -> None:
    """Receive the functions of the tensor layer that nodes need."""
    globals().update(functions)
