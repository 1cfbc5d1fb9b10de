"""Primitives: one record per operation, and the kinds that carry what operations have in common.

Note [Calling a primitive]
A primitive is called with arrays by position and static parameters by keyword.
Rule 1. If an argument is a Tensor, the call is recorded in the graph (the tensor layer installs `record`).
Rule 2. Else, if an argument carries a level, the highest level handles the call; everything below is a constant to it.
Rule 3. Else the implementation runs on the raw arrays at once.
A rule (vjp or jvp) that uses only `xp` and operators therefore runs on every kind of value.

Note [Results that share memory]
The declaration says how a result lies in memory.
`view=True`: it always shows the memory of the first input, and a write into either is one into both, in every mode. Only such an
operation may make a view (`view_op`).
`may_alias=True`: it may show that memory, or be the input itself, as `astype` to the same dtype. It is no view.
`dense=True`: it has dense memory, where NumPy may follow the inputs. `dense=False`: it has its memory from the implementation in
every mode, which follows an order on purpose. If neither is said, rules for duals and batches may lay it out as they like, and it
is made dense inside transforms; elementwise operations follow their inputs there, too. A view is never laid out anew.

Note [An elementwise rule is the differential]
`rule(xp, t, ...)` maps a tangent of its input to the tangent of the output; that is the jvp. For real arrays the same
expression maps the output's gradient to the input's. With complex numbers the vjp is conj(rule(conj(g))), which is
torch's convention, and where a complex input gives a real output the jvp is the real part of the rule.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._generated import emit
from .._stored import StoredArray, run_stored
from .._thresholds import NATIVE_SLOW
from .._warnings import warn
from . import heap as heap
from . import numpy_namespace as numpy_vocabulary
from .arrays import LEVEL_TYPES, Batched, Dual, LevelArray, operators, raw_leaf, samples_apart
from .levels import DUAL, Level
from .numpy_namespace import _NUMPY_TYPES, SINGLE, cast, declared, is_half, numpy_namespace, raw_namespace
from .shown import Shown

ELEMENTWISE, LINEAR, MULTILINEAR, GENERAL, FUSED = "elementwise", "linear", "multilinear", "general", "fused"

Rule = Callable[..., Any]

# Exact types, which are told apart in 30 ns; isinstance asks the metaclass of Tensor, too.
OF_THE_CPU = _NUMPY_TYPES | {bool, int, float, complex}
NO_TENSORS = OF_THE_CPU | LEVEL_TYPES

primitives: dict[str, Primitive] = declared


class Vocabulary:
    """`xp` for Tensors, duals and batches: every name is a primitive."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = primitives[name]
        except KeyError:
            raise AttributeError(f"xp has no {name!r}: a rule may use the closed vocabulary only") from None
        setattr(self, name, value)  # the next read finds it without this call
        return value


vocabulary = Vocabulary()


def namespace_of(*values: Any) -> Any:
    """Choose `xp` over every value a rule will see."""
    raw: Any = None
    for value in values:
        if isinstance(value, LevelArray) or (tensor_type is not None and isinstance(value, tensor_type)):
            return vocabulary
        if raw is None and hasattr(value, "dtype"):
            raw = value
    return numpy_namespace if raw is None else raw_namespace(raw)


# ---- what the tensor layer and the engine install (nothing here imports upward) ----
tensor_type: Any = None
record: Callable[..., Any] | None = None


def install_tensor(type_: type, record_: Callable[..., Any]) -> None:
    """Tell primitives what a Tensor is and how a call on Tensors is recorded."""
    global tensor_type, record
    tensor_type, record = type_, record_


VARARGS = 0x04  # inspect.CO_VARARGS; importing inspect takes a fifth of our import time


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a plain function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


class CompiledRule:
    """A rule together with the names it reads from a node."""

    def __init__(self, function: Rule, allowed: Sequence[str], owner: str, skip: int = 2) -> None:
        self.function = function
        self.owner = owner
        self.names = parameters_of(function)[skip:]
        unknown = set(self.names) - set(allowed)
        if unknown:
            raise TypeError(f"{owner}: the rule reads {sorted(unknown)}, but the operation has nothing of that name")

    @cached_property
    def call(self) -> Callable[..., Any]:
        """Return `lambda xp, g, n: rule(xp, g, n.x, ...)`, made on first use."""
        arguments = "".join(f", n.{name}" for name in self.names)
        text = f"def rule_of_node(xp, g, n):\n    return rule(xp, g{arguments})"
        return emit(f"a rule of {self.owner}", text, {"rule": self.function})["rule_of_node"]  # type: ignore[no-any-return]


class Gathers(NamedTuple):
    """A product with weights whose gradient is `left.T @ right`, rows of `g` or of a saved input: uses that follow each other
    are gathered, see `autograd/_gathered.py`. The gradient of the bias is the sum of the rows of `left`.
    """

    weights: str
    left: str
    right: str
    bias: str | None = None


class Primitive(Shown):
    """An operation: implementation, vjp, jvp and batching rule. See Note [Calling a primitive]."""

    def __init__(
        self,
        name: str,
        kind: str,
        inputs: tuple[str, ...],
        statics: tuple[str, ...] = (),
        implementation: Callable[..., Any] | None = None,
        *,
        torch: str | None = None,
        outputs: int = 1,
        variadic: bool = False,
        rest: str | None = None,
        differentiable: bool = True,
        batch: Rule | None = None,
        shows: str | dict[str | None, str] | None = None,
        widens: bool = False,
        reads_halves: bool = False,
        dense: bool | None = None,
        view: bool = False,
        may_alias: bool = False,
    ) -> None:
        super().__init__(shows)
        self.name = name
        self.kind = kind
        self.inputs = inputs
        self.statics = statics
        self.implementation = implementation
        self.torch = torch or name
        self.outputs = outputs
        self.variadic = variadic  # all inputs are one sequence: f(*arrays)
        self.rest = rest  # name of a sequence of inputs after named ones: f(x, *indices)
        self.differentiable = differentiable
        self.rules: dict[str, CompiledRule] = {}
        self.group_rule: CompiledRule | None = None
        self.jvp_rule: Rule | None = None
        self.jvp_names: tuple[str, ...] = ()
        self.moved = tuple([name for name in statics if name in MOVED])  # see `behind`
        self.batch_rule: Rule | None = None
        if batch is not None:
            self.batch(batch)
        self.self_adjoint = False
        self.plain_rules: dict[
            str, Callable[..., Any]
        ] = {}  # see `elementwise`; by the input whose gradient they compute
        self.large_backward: Any = None  # of an elementwise operation: see `_graph/large_backward.py`
        self.gathers: Gathers | None = None
        self.turned: str | None = None  # the input that torch transposes by a node of its own
        self.hot_if: str | None = None  # of the arrays x0, x1, ..., of one dtype: what the hot path takes unchecked
        self.exact = False  # of one NumPy function: half precision loses nothing there
        self.library: Any = None  # that function's kernels, see `_native/library.py`
        self.widens = widens  # half precision is computed in float32 and rounded once
        self.reads_halves = reads_halves  # an operation that widens: its implementation and rules do it themselves; that returns float32
        self.view = view  # the result shows the memory of the first input; see Note [Results that share memory]
        self.may_alias = view or may_alias
        self.dense = False if view else dense
        self.recorders: dict[str | None, Any] = {}  # by node name: what `tensor/_recording/flat.py` has written
        self.view_recorders: dict[str | None, Any] = {}
        self.quick_rules: Any = None  # see `quick_elementwise`
        self.__name__ = name
        if name in primitives:
            raise TypeError(f"primitive {name!r} is declared twice")
        primitives[name] = self
        operators[name] = self

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    # ---- declaring rules ----
    @property
    def readable(self) -> tuple[str, ...]:
        """Return the names a rule may read."""
        metadata = [f"{name}_{fact}" for name in self.inputs for fact in ("shape", "dtype")]
        return (*self.inputs, "out", "needed", *self.statics, *metadata)

    def vjp(self, *names: str) -> Callable[[Rule], Rule]:
        """Declare the vjp for one input, or for several that share work (then it returns a tuple)."""

        def declare(rule: Rule) -> Rule:
            compiled = CompiledRule(rule, self.readable, self.name)
            if len(names) == 1 and not self.variadic:
                self.rules[names[0]] = compiled
            else:
                self.group_rule = compiled
            return rule

        return declare

    def jvp(self, rule: Rule) -> Rule:
        """Declare the jvp: `rule(xp, t, ...)`, t a tuple when there are several inputs."""
        self.jvp_rule = rule
        self.jvp_names = parameters_of(rule)[2:]
        unknown = set(self.jvp_names) - set(self.readable)
        if unknown:
            raise TypeError(f"{self.name}: the jvp reads {sorted(unknown)}, but the operation has nothing of that name")
        return rule

    def batch(self, rule: Rule) -> Rule:
        """Declare the batching rule: `rule(call, args, batched, size, **params)`, batch axes first on both sides."""
        if rule is behind and self.statics and not self.moved:
            raise TypeError(
                f"{self.name}: batch=behind moves static parameters called {', '.join(MOVED)}, and finds {', '.join(self.statics)}: "
                "call an axis by one of these names; say batch=unmoved if none is an axis or shape, or write a rule with @op.batch"
            )
        self.batch_rule = rule
        return rule

    # ---- calling ----
    def __call__(self, *args: Any, **params: Any) -> Any:
        for arg in args:
            if type(arg) not in NO_TENSORS and tensor_type is not None and isinstance(arg, tensor_type):
                return record(self, args, params)  # type: ignore[misc]
        return self.bind(args, params)

    def bind(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run on arrays of any level."""
        for arg in args:
            if type(arg) in LEVEL_TYPES:
                return self.bind_level(args, params)
        return self.run(args, params)

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run on raw arrays."""
        xp = numpy_namespace
        for arg in args:
            if type(arg) in OF_THE_CPU:
                continue
            if type(arg) is StoredArray:
                return run_stored(self, args, params)
            if (own := raw_namespace(arg)) is not numpy_namespace:
                if own.runs_operations:
                    return own.run(self, args, params)
                xp, args = own, _on_one_device(self, own, args)
                break
        if self.widens and is_half(args[0].dtype):
            half = args[0].dtype
            first = args[0] if self.reads_halves else cast(args[0], SINGLE)
            return cast(self.implementation(xp, first, *args[1:], **params), half)  # type: ignore[misc]
        if self.implementation is None:
            if self.exact and xp is numpy_namespace:
                return self._exactly(args, params)
            return getattr(xp, self.name)(*args, **params)
        return self.implementation(xp, *args, **params)

    def _exactly(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run NumPy's function; large arrays by a kernel."""
        function = getattr(numpy_namespace, self.name)
        for arg in args:
            if type(arg) is np.ndarray and arg.size >= NATIVE_SLOW and not params:
                self.library = self.library or numpy_vocabulary.native.library(self.name, function)
                return function(*args) if self.library is None else self.library.of_any_size(*args)
        return function(*args, **params)

    def bind_level(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run on arrays, at least one of which has a level."""
        if self.kind is ELEMENTWISE and not params:
            quick = quick_elementwise(self, args)
            if quick is not None:
                return quick
        level: Any = None
        for arg in args:
            if type(arg) in LEVEL_TYPES:
                own = arg.level
                if not own.alive and not engine_state.depth:
                    return self.bind([check_alive(one) if type(one) in LEVEL_TYPES else one for one in args], params)
                if level is None or own.number > level.number:
                    level = own
        if level.kind == DUAL:
            return self._bind_dual(level, args, params)
        return self._bind_batched(level, args, params)

    def _bind_dual(self, level: Level, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        moves = False
        for arg in args:
            if type(arg) is Dual and arg.level is level:
                primals.append(arg.primal)
                tangents.append(arg.tangent)
                moves = moves or arg.tangent is not None
            else:
                primals.append(arg)
                tangents.append(None)
        out = self.bind(primals, params)
        if not moves or not self.differentiable:
            return out
        t_out = self.push_forward(primals, tangents, out, params)
        if self.outputs == 1:
            return out if t_out is None else Dual(level, out, t_out)
        return tuple(o if t is None else Dual(level, o, t) for o, t in zip(out, t_out, strict=True))

    def push_forward(self, primals: Sequence[Any], tangents: Sequence[Any], out: Any, params: dict[str, Any]) -> Any:
        """Apply the jvp: tangents (None for zero) of the inputs to the tangent of the output."""
        if self.jvp_rule is not None:
            return self._declared_jvp(primals, tangents, out, params)
        if self.kind == ELEMENTWISE:
            return self._elementwise_jvp(primals, tangents, out, params)
        if self.kind == LINEAR:
            if self.variadic:
                tangents = [
                    vocabulary.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)
                ]
                return self.bind(tangents, params)
            if tangents[0] is None:
                return None
            return self.bind([tangents[0], *primals[1:]], params)
        if self.kind == MULTILINEAR:
            total = None
            for i, tangent in enumerate(tangents):
                if tangent is not None:
                    term = self.bind([tangent if j == i else p for j, p in enumerate(primals)], params)
                    total = term if total is None else total + term
            return total
        raise NotImplementedError(
            f"Trying to use forward AD with {self.torch} that does not support it because it has not been "
            "implemented yet."
        )

    def _elementwise_jvp(self, primals: Sequence[Any], tangents: Sequence[Any], out: Any, params: Any) -> Any:
        values = dict(zip(self.inputs, primals, strict=True)) | params | {"out": out}
        total, used, usual = None, [], True
        for name, primal, tangent in zip(self.inputs, primals, tangents, strict=True):
            if tangent is None or name not in self.rules:
                continue
            rule = self.rules[name]
            xp = namespace_of(tangent, out, *primals)
            if tangent.shape != out.shape:
                tangent = xp.broadcast_to(tangent, shape=tuple(out.shape))
            used.append(tangent)
            usual = usual and tangent.dtype == primal.dtype
            term = rule.function(xp, tangent, *[_read(values, n, self.inputs, primals) for n in rule.names])
            if primal.dtype.kind == "c" and out.dtype.kind != "c" and term.dtype.kind == "c":
                term = namespace_of(term).real(term)
            total = term if total is None else total + term
        if total is None:
            return None
        if usual and total.dtype != out.dtype:  # a tangent that was given in a dtype of its own goes by promotion
            return vocabulary.astype(total, dtype=out.dtype)
        if not self.view and any(total is t for t in used):
            total = vocabulary.copy(total)  # an in-place write into the output must not reach the input's tangent
        return total

    def _declared_jvp(self, primals: Sequence[Any], tangents: Sequence[Any], out: Any, params: Any) -> Any:
        values = self.named(primals) | params | {"out": out}
        outs = out if self.outputs != 1 else (out,)
        xp = namespace_of(*[t for t in tangents if t is not None], *primals, *outs)
        t = tangents[0] if len(self.inputs) == 1 and not self.variadic else tuple(tangents)
        found = self.jvp_rule(xp, t, *[_read(values, n, self.inputs, primals) for n in self.jvp_names])  # type: ignore[misc]
        if any(t is not None and t.dtype != p.dtype for t, p in zip(tangents, primals, strict=True)):
            return found  # a tangent that was given in a dtype of its own goes by promotion
        if self.outputs == 1:
            return _as_precise(found, out)
        return tuple([_as_precise(t, o) for t, o in zip(found, out, strict=True)])

    def named(self, args: Sequence[Any]) -> dict[str, Any]:
        """Return the inputs by name; a sequence of inputs is a tuple."""
        if self.variadic:
            return {self.inputs[0]: tuple(args)}
        values = dict(zip(self.inputs, args, strict=False))
        if self.rest is not None:
            values[self.rest] = tuple(args[self.inputs.index(self.rest) :])
        return values

    def _bind_batched(self, level: Level, args: Sequence[Any], params: dict[str, Any]) -> Any:
        batched: list[bool] = []
        arrays: list[Any] = []
        for arg in args:
            mine = type(arg) is Batched and arg.level is level
            batched.append(mine)
            arrays.append(arg.array if mine else arg)
        if self.kind == ELEMENTWISE:
            out = self.bind(align_ranks(arrays, batched), params)
        elif self.batch_rule is not None:
            out = self.batch_rule(self, arrays, batched, level.size, **params)
        else:
            out = self._loop(arrays, batched, level.size, params)
        if self.outputs == 1:
            return Batched(level, samples_apart(out, arrays))
        return tuple(Batched(level, part) for part in out)

    def _loop(self, arrays: Sequence[Any], batched: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
        warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {self.torch}. "
            "Please file us an issue on GitHub so that we can prioritize its implementation."
        )
        rows = []
        for i in range(size):
            row = [vocabulary.getitem(a, index=(i,)) if b else a for a, b in zip(arrays, batched, strict=True)]
            rows.append(self.bind(row, params))
        if self.outputs == 1:
            return stack(rows)
        return tuple(stack(list(column)) for column in zip(*rows, strict=True))


# ---- the common case of levels: elementwise, one level over plain floats ----
NDARRAY = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def quick_elementwise(primitive: Primitive, args: Sequence[Any]) -> Any:
    """Run an elementwise operation on duals or batches of one level over NumPy's floats; None if the case is another."""
    level: Any = None
    kind: Any = None
    dtype: Any = None
    rank = beside = 0
    values: list[Any] = []
    for arg in args:
        given = type(arg)
        if given is Batched or given is Dual:
            value = arg.array if given is Batched else arg.primal
            if type(value) is not NDARRAY:
                return None
            if level is None:
                level, kind, rank = arg.level, given, value.ndim
            elif arg.level is not level or value.ndim != rank:
                return None
        elif given is float or given is int:
            values.append(arg)
            continue
        elif given is NDARRAY:
            value = arg
            beside = max(beside, value.ndim)
        else:
            return None
        if dtype is None:
            dtype = value.dtype
            if dtype is not F32 and dtype is not F64:
                return None
        elif value.dtype is not dtype:
            return None
        values.append(value)
    if kind is Batched and beside >= rank:  # broadcasting would line a constant up with the batch
        return None
    if (not level.alive and not engine_state.depth) or primitive.view:  # whose tangents are views, too
        return None
    rules = primitive.quick_rules
    if rules is None:
        rules = primitive.quick_rules = _quick_rules(primitive)
    out = rules[0](*values)
    if kind is Batched:
        return Batched(level, samples_apart(out, values))
    if not primitive.differentiable:
        return out
    if type(out) is not NDARRAY:
        return None
    total = None
    for arg, rule in zip(args, rules[1:], strict=True):
        if type(arg) is not Dual or (t := arg.tangent) is None:
            continue
        if rule is None or type(t) is not NDARRAY or t.shape != out.shape:
            return None
        term = rule(t, values, out)
        if term is t and total is None:
            term = t.copy()  # a write into the output must not reach the input's tangent
        total = term if total is None else total + term
    if total is None:
        return out
    return Dual(level, out, total) if total.dtype is out.dtype else None


def _quick_rules(primitive: Primitive) -> tuple[Any, ...]:
    """Return an operation on NumPy arrays, and what its rules do for the tangents of its inputs."""
    found: list[Any] = [getattr(numpy_namespace, primitive.name)]
    for name in primitive.inputs:
        rule = primitive.rules.get(name)
        if rule is None or any(one != "out" and one not in primitive.inputs for one in rule.names):
            found.append(None)
            continue
        read = ", ".join("out" if one == "out" else f"v[{primitive.inputs.index(one)}]" for one in rule.names)
        scope = {"rule": rule.function, "xp": numpy_namespace}
        text = f"def tangent(t, v, out):\n    return rule(xp, t, {read})"
        found.append(emit(f"the tangent of {primitive.name} for {name}", text, scope)["tangent"])
    return tuple(found)


def stack(rows: Sequence[Any]) -> Any:
    """Stack arrays of any level along a new first axis."""
    return vocabulary.concat(*[vocabulary.expand_dims(row, axis=0) for row in rows], axis=0)


def _on_one_device(primitive: Primitive, xp: Any, args: Sequence[Any]) -> list[Any]:
    """Let numbers of the CPU join arrays of a device, as torch does; refuse whole arrays, except as indices."""
    settled = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            if not arg.ndim:
                arg = arg[()]
            elif primitive.rest is not None:
                arg = xp.module.asarray(arg)
            elif primitive.name != "to_device":
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
                )
        settled.append(arg)
    return settled


def ones_beside(array: Any) -> Any:
    """Return raw ones in the shape and dtype, and on the device, of an array of any level."""
    return raw_namespace(raw_leaf(array)).ones(shape=tuple(array.shape), dtype=array.dtype)


def _as_precise(tangent: Any, out: Any) -> Any:
    """Give a tangent the precision of its result: a rule's Python numbers turn bfloat16 into float32."""
    if tangent is None or tangent.dtype == out.dtype or (tangent.dtype.kind == "c") != (out.dtype.kind == "c"):
        return tangent
    return vocabulary.astype(tangent, dtype=out.dtype)


def _read(values: dict[str, Any], name: str, inputs: tuple[str, ...], primals: Sequence[Any]) -> Any:
    if name in values:
        return values[name]
    if name == "needed":
        return (True,) * len(primals)
    base, _, fact = name.rpartition("_")
    value = values[base]
    return tuple(value.shape) if fact == "shape" else value.dtype


def align_ranks(arrays: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Insert axes behind the batch axis so that broadcasting lines up as it would without the batch."""
    rank = max(np.ndim(a) - b if not hasattr(a, "ndim") else a.ndim - b for a, b in zip(arrays, batched, strict=True))
    aligned = []
    for array, mine in zip(arrays, batched, strict=True):
        if mine and array.ndim - 1 < rank:
            shape = tuple(array.shape)
            array = vocabulary.reshape(array, shape=(shape[0], *(1,) * (rank - array.ndim + 1), *shape[1:]))
        aligned.append(array)
    return aligned


def front(array: Any, batched: bool, size: int) -> Any:
    """Give an array its batch axis, by broadcasting if it has none."""
    return array if batched else vocabulary.broadcast_to(array, shape=(size, *array.shape))


# ---- batching rules that many operations share ----
def _next(axis: Any, size: int) -> Any:
    return tuple([a + 1 for a in axis]) if type(axis) is tuple else axis + 1


AXES = ("axis", "axes", "axis1", "axis2", "lead")
# What a new first axis of `size` does to static parameters, by their names.
MOVED: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(AXES, _next),
    "shape": lambda shape, size: (size, *shape),
    "index": lambda index, size: (slice(None), *index),
    **dict.fromkeys(("before", "after"), lambda widths, size: (0, *widths)),
}


def unmoved(call: Any, args: Sequence[Any], batched: Sequence[bool], size: int, /, **params: Any) -> Any:
    """Batch an operation to which axes in front make no difference: it counts its axes from the end, or has none."""
    return call(*[front(a, b, size) for a, b in zip(args, batched, strict=True)], **params)


def behind(call: Any, args: Sequence[Any], batched: Sequence[bool], size: int, /, **params: Any) -> Any:
    """Batch an operation that does behind the batch axis what it does without: its axes move on by one, see `MOVED`."""
    for name in call.moved:
        value = params[name]
        if name in AXES and (min(value, default=0) if type(value) is tuple else value) < 0:
            raise ValueError(f"{call.name}: {name}={value} counts from the end; a primitive counts axes from the front")
        params[name] = MOVED[name](value, size)
    return unmoved(call, args, batched, size, **params)


def aligned(call: Any, args: Sequence[Any], batched: Sequence[bool], size: int, /, **params: Any) -> Any:
    """Batch an operation that broadcasts all axes but the last, and counts those from the end."""
    return call(*align_ranks(args, batched), **params)


# ---- dead levels ----
class _EngineState(threading.local):
    """How many runs of the engine are under way in this thread, and the innermost; the transform that asked for one."""

    asked_by: Any = None
    depth, fresh = 0, False  # fresh: this thread was started to go deeper
    task: Any = None
    watched: Any = None  # the node that anomaly detection runs


engine_state = _EngineState()  # the engine alone may compute with levels whose transform has ended


def check_alive(array: Any) -> Any:
    """Turn a dead dual into its primal, and refuse a dead batch, unless the engine runs."""
    if array.level.alive or engine_state.depth:
        return array
    if isinstance(array, Dual):
        return check_alive(array.primal) if isinstance(array.primal, LevelArray) else array.primal
    raise RuntimeError(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
        "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
        "`gen_vmap_plumbing` Please file an issue if it looks like the latter\n"
        "Hint: the tensor belongs to a vmap that has returned; return it from the function given to vmap instead of "
        "storing it outside."
    )


# ---- the kinds ----
def elementwise(
    name: str,
    dx: Rule | None = None,
    dy: Rule | None = None,
    dz: Rule | None = None,
    *,
    torch: str | None = None,
    inputs: tuple[str, ...] | None = None,
    statics: tuple[str, ...] = (),
    implementation: Callable[..., Any] | None = None,
    shows: str | dict[str | None, str] | None = None,
    exact: bool = False,
    self_adjoint: bool = False,
    view: bool = False,
    may_alias: bool = False,
    plain: dict[str, Callable[..., Any]] | None = None,
) -> Primitive:
    """Declare an elementwise operation by its differentials. See Note [An elementwise rule is the differential].

    Without an implementation it is the function that NumPy and CuPy have under its name. Half precision is then computed in float32
    and rounded once; unless it is `exact`, because the function gives one of its operands, or a truth value, or rounds once itself.
    `shows`: see Note [What torch shows]. `view`, `may_alias`: see Note [Results that share memory].
    `self_adjoint`: the rule is real-linear only, and is its own adjoint; the vjp is then the rule without conjugates.
    `plain`: what rules come to on NumPy arrays of one float dtype and shape, `f(g, ..., out=None)` in fewer calls, to the bit.
    """
    given = {"x": dx, "y": dy, "z": dz}
    if inputs is None:
        inputs = tuple(n for n, rule in given.items() if rule is not None) or ("x",)
        inputs = ("x", "y", "z")[: max(("x", "y", "z").index(n) for n in inputs) + 1]
    if implementation is None and not hasattr(np, name) and not numpy_namespace.has_own(name):
        raise TypeError(f"{name}: NumPy has no function of this name; give the operation an implementation")
    differentiable = any(rule is not None for rule in given.values())
    primitive = Primitive(
        name,
        ELEMENTWISE,
        inputs,
        statics,
        implementation,
        torch=torch,
        differentiable=differentiable,
        shows=shows,
        view=view,
        may_alias=may_alias,
    )
    for input_name, rule in given.items():
        if rule is not None:
            primitive.vjp(input_name)(rule)
    primitive.exact = exact
    primitive.self_adjoint = self_adjoint
    primitive.plain_rules = plain or {}
    return primitive


def _from_function(kind: str, function: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    if function is None:
        return lambda f: _from_function(kind, f, options)
    code = function.__code__
    arrays = parameters_of(function)[1:]
    statics = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    sequence = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & VARARGS else None
    if sequence is not None:
        arrays = (*arrays, sequence)
    variadic = sequence is not None and len(arrays) == 1
    options.setdefault("rest", None if variadic else sequence)
    name = options.pop("name", function.__name__)
    primitive = Primitive(name, kind, arrays, statics, function, variadic=variadic, **options)
    primitive.__doc__ = function.__doc__
    return primitive


def linear(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare an operation that is linear in its first input; its jvp is the operation on the tangent."""
    return _from_function(LINEAR, function, options)


def multilinear(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare an operation that is linear in each input."""
    return _from_function(MULTILINEAR, function, options)


def general(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare an operation with rules of its own."""
    return _from_function(GENERAL, function, options)


__all__ = ["Primitive", "elementwise", "front", "general", "linear", "multilinear", "vocabulary"]
