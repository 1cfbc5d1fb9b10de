"""Fused operations: their nodes, and recording off the hot path. See Note [Fused operations] in `_core/fused.py`.

On plain arrays a call is one node, which keeps the inputs and the residuals. Its backward runs on raw arrays; where a graph of
the backward is wanted, or a gradient carries levels, the decomposition runs on the saved inputs and is differentiated instead. A
batch of one vmap over plain arrays is one node as well, if the operation has a batching rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..._core.arrays import Batched, LevelArray
from ..._core.fused import Fused
from ..._core.levels import Level
from ..._core.numpy_namespace import _NUMPY_TYPES, HALVES, numpy_namespace
from ..._core.primitive import engine_state, vocabulary
from ..._core.shown import parameter
from ..._generated import emit
from ..._graph.guards import fresh
from ..._graph.node import Guard, Node, saved_properties
from ..._graph.unpacked import computing_with_unpacked, settled
from ..._modes import Mode, current_mode, using
from .. import _base
from .._base import LEAF, edge_of, wrap
from .._object import layout as _layout
from .record import make_meta, wrap_outputs
from .saved import note_origin, pack, save_arrays

NDARRAY = np.ndarray
SINGLE = F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
PLAIN_PARTS = frozenset({*_NUMPY_TYPES, type(None)})  # of a gradient of several outputs
gradients_of: Any = None  # installed by the engine's layer: torch's `grad`

_decomposed: ContextVar[bool] = ContextVar("decomposed", default=False)
decomposing = _decomposed.get  # tells whether fused operations run by their decompositions


def install(grad: Any) -> None:
    """Receive `autograd.grad`, by which a decomposition is differentiated."""
    global gradients_of
    gradients_of = grad


@contextmanager
def decomposed() -> Iterator[None]:
    """Run fused operations by their decompositions: tests hold the two equal."""
    token = _decomposed.set(True)
    try:
        yield
    finally:
        _decomposed.reset(token)


class FusedNode(Node):
    """The node of a fused operation; a subclass for each has slots for its inputs."""

    __slots__ = ("is_plain", "level", "needs", "num_outputs", "params", "residuals")

    operation: Fused
    saves = makes_gradients = True
    is_plain: bool  # whether all arrays are NumPy's, of float32 or float64 or integers
    level: Level | None  # of the batch whose rule has run

    def pull_back(self, g: Any, graph: bool) -> Any:
        kind = type(g)
        if (
            not graph
            and self.is_plain
            and (kind in _NUMPY_TYPES or (kind is tuple and PLAIN_PARTS.issuperset(map(type, g))))
            and fresh(self)
        ):
            operation = self.operation
            return operation.back(numpy_namespace, g, self.needs, self.residuals, *self.read(), **self.params)
        if not graph and self.level is not None and fresh(self):
            raw = _of_batch(g, self.level)
            if raw is not None:
                return self._pull_back_batch(raw, self.level)
        self.check_saved()
        packed = self.guard is not None and bool(self.guard.packed)
        parts = g if type(g) is tuple else (g,)
        if graph or self.level is not None or any(isinstance(part, LevelArray) for part in parts):
            self.check_saved(self.operation.unread)  # the decomposition reads all inputs
            grads = self._pull_back_by_parts(parts, graph)
            return settled(self, g, grads) if packed else grads
        values, residuals = self.values(False), self._kept()
        arrays = [getattr(values, name) for name in self.array_names]
        if not packed:
            return self.operation.pull_back(g, self.needs, residuals, arrays, self.params)
        with computing_with_unpacked(self):
            return settled(self, g, self.operation.pull_back(g, self.needs, residuals, arrays, self.params))

    def _pull_back_batch(self, g: Any, level: Level) -> Any:
        operation, saved = self.operation, self.read()
        batched = tuple([type(one) is Batched for one in saved])
        arrays = [one.array if mine else one for one, mine in zip(saved, batched, strict=True)]
        grads = operation.batch_back(numpy_namespace, g, self.needs, self.residuals, batched, *arrays, **self.params)
        return [None if grad is None else Batched(level, grad) for grad in grads]

    def _kept(self) -> Any:
        packed = None if self.guard is None else self.guard.packed.get("residuals")
        if packed is None:
            return self.residuals
        return tuple([self._unpack(one, None)._array if held else one for held, one in packed])

    def _pull_back_by_parts(self, parts: Sequence[Any], graph: bool) -> Any:
        """Differentiate the decomposition, run again on the saved inputs."""
        create_graph = current_mode().grad
        inputs: list[Any] = []
        with using(grad=True):
            for name, needed in zip(self.array_names, self.needs, strict=True):
                tensor = self.saved_tensor(name)
                if tensor is not None:
                    # Its own tensor, even where one stands for two inputs; outside the graph if none is wanted.
                    tensor = vocabulary.alias(tensor) if graph else wrap(tensor._array, LEAF if needed else None)
                inputs.append(tensor)
            out = by_parts(self.operation, inputs, self.params)
        outs = out if type(out) is tuple else (out,)
        arrived = [
            (one, part if graph else wrap(part))
            for one, part in zip(outs, parts, strict=True)
            if part is not None and one.requires_grad
        ]
        wanted = [one for one, needed in zip(inputs, self.needs, strict=True) if needed]
        outs, seeds = zip(*arrived, strict=True)
        found = iter(
            gradients_of(outs, wanted, seeds, create_graph=create_graph, allow_unused=True, materialize_grads=True)
        )
        grads = [next(found) if needed else None for needed in self.needs]
        return grads if graph else [None if grad is None else grad._array for grad in grads]

    def release(self, freed: Any) -> None:
        super().release(freed)
        self.residuals = None


def _of_batch(g: Any, level: Level) -> Any:
    """Return a gradient over NumPy's arrays with the axis of a batch in front; None if it has other levels."""
    if type(g) is Batched and g.level is level:
        return g.array if type(g.array) is NDARRAY else None
    return np.repeat(g[None], level.size, 0) if type(g) in _NUMPY_TYPES else None


def _reader(names: tuple[str, ...]) -> Any:
    """Return a method that reads the saved inputs."""
    text = f"def read(self):\n    return ({''.join(f'self.{name}, ' for name in names)})"
    return emit(f"reading {', '.join(names)}", text, {})["read"]


def node_class_of(operation: Fused) -> type[FusedNode]:
    """Return the class of an operation's nodes, made on first use."""
    if operation.node_class is None:
        operation.node_class = _make_node_class(operation)
    return operation.node_class  # type: ignore[no-any-return]


def _make_node_class(operation: Fused) -> type[FusedNode]:
    names = operation.inputs
    body = {
        "__slots__": names,
        "operation": operation,
        "array_names": names,
        "unguarded": frozenset(operation.unread),
        "input_of": {name: i for i, name in enumerate(names)},
        "readers": dict.fromkeys(names, ()),
        "visible": operation.edges,
        "read": _reader(names),
        **saved_properties(operation.names_shown(operation.node_name, names, parameter) or {}, names),
    }
    return type(operation.node_name, (FusedNode,), body)


def by_parts(operation: Fused, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run the decomposition on Tensors; half precision in float32, rounded once."""
    if not operation.widens:
        return operation.parts(vocabulary, *args, **params)
    half = next((a.dtype for a in args if a is not None and a.dtype.numpy in HALVES), None)
    if half is None:
        return operation.parts(vocabulary, *args, **params)
    wide = [a if a is None or a.dtype is not half else vocabulary.astype(a, dtype=SINGLE) for a in args]
    out = operation.parts(vocabulary, *wide, **params)
    if type(out) is not tuple:
        return vocabulary.astype(out, dtype=half.numpy)
    return tuple([vocabulary.astype(one, dtype=half.numpy) if one.is_floating_point() else one for one in out])


def _dense(out: Any, args: Sequence[Any]) -> Any:
    """Give what a decomposition has made the memory that the kernel would have made."""
    if type(out) is tuple:
        return tuple([_dense(one, args) for one in out])
    if (out._extra is None or out._extra.view is None) and all([out is not arg for arg in args]):
        out._array = _layout.packed(out._array)
    return out


def record_in_general(operation: Fused, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run and record a fused operation on Tensors (or None) in any mode: what `record` does where the hot path cannot."""
    mode = current_mode()
    tensor_type = _base.Tensor
    arrays: list[Any] = []
    fits = not decomposing()
    for arg in args:
        if arg is None:
            arrays.append(None)
            continue
        array = arg._array if isinstance(arg, tensor_type) else arg
        if isinstance(array, LevelArray) or array.dtype.kind == "c":
            fits = False
        arrays.append(array)
    if mode.recording is not None:
        mode.recording.need_traced(args)
    if not fits:
        if operation.batch_rule is not None and not decomposing():
            result = _record_batch(operation, args, arrays, params, mode)
            if result is not None:
                return result
        return _dense(by_parts(operation, args, params), args)
    if mode.dispatch is None:
        out, residuals = operation.run(arrays, params)
    else:
        out, residuals = mode.dispatch(operation, operation.node_name, args, lambda: operation.run(arrays, params))
    if mode.saved_hooks:
        out = tuple(map(_base.memory_of, out)) if type(out) is tuple else _base.memory_of(out)
    if mode.tracks:
        edges = tuple([edge_of(arg) if isinstance(arg, tensor_type) else None for arg in args])
        for edge in edges:
            if edge is not None:
                node = _build(operation, args, arrays, out, residuals, params, edges, mode)
                return wrap_outputs(operation, out, node, mode)  # type: ignore[arg-type]
    return wrap_outputs(operation, out, None, mode)  # type: ignore[arg-type]


def _record_batch(
    operation: Fused, args: Sequence[Any], arrays: Sequence[Any], params: dict[str, Any], mode: Mode
) -> Any:
    """Do the same for a batch of one vmap over NumPy's floats, by the batching rule; None for what goes by parts."""
    if mode.dispatch is not None or mode.saved_hooks:
        return None
    level: Any = None
    dtype: Any = None
    batched: list[bool] = []
    raw: list[Any] = []
    for array in arrays:
        mine = type(array) is Batched
        if mine:
            if level is not None and array.level is not level:
                return None
            level, array = array.level, array.array
        if array is not None:
            if type(array) is not NDARRAY:
                return None
            d = array.dtype
            if d is F32 or d is F64:
                if dtype is not None and d is not dtype:
                    return None
                dtype = d
            elif d.kind not in "iub":
                return None
        batched.append(mine)
        raw.append(array)
    if level is None or dtype is None or not (level.alive or engine_state.depth):
        return None
    found = operation.batch_rule(numpy_namespace, level.size, tuple(batched), *raw, **params)  # type: ignore[misc]
    if found is None:
        return None
    out, residuals = Batched(level, found[0]), found[1]
    node = None
    if mode.tracks:
        edges = tuple([edge_of(arg) if isinstance(arg, _base.Tensor) else None for arg in args])
        if any([edge is not None for edge in edges]):
            node = _build(operation, args, arrays, out, residuals, params, edges, mode)
            node.level = level
    return wrap_outputs(operation, out, node, mode)  # type: ignore[arg-type]


def _build(
    operation: Fused,
    args: Sequence[Any],
    arrays: Sequence[Any],
    out: Any,
    residuals: Any,
    params: dict[str, Any],
    edges: tuple[Any, ...],
    mode: Mode,
) -> FusedNode:
    cls = node_class_of(operation)
    node = cls().begin(edges)
    node.meta = make_meta(operation, arrays, out, edges)  # type: ignore[arg-type]
    node.needs = tuple([edge is not None for edge in edges])
    node.params, node.residuals, node.num_outputs = params, residuals, operation.outputs
    node.is_plain, node.level = False, None
    save_arrays(node, cls, args, dict(zip(operation.inputs, arrays, strict=True)), out, edges, mode)
    if mode.saved_hooks and type(residuals) is tuple:
        _pack_residuals(node, mode)
    if mode.anomaly:
        note_origin(node, out, [array for array in arrays if array is not None], mode)
    return node


def _pack_residuals(node: Any, mode: Mode) -> None:
    """Hand the arrays among the residuals to the hooks, after the inputs."""
    node.guard = node.guard or Guard()
    node.guard.packed["residuals"] = [
        (True, pack(wrap(one), mode)) if isinstance(one, np.ndarray) else (False, one) for one in node.residuals
    ]
    node.residuals = None
