"""Rules and nodes of every operation: what rules use, the dtypes they give, what a node keeps for them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core import primitive as core
from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._core.primitive import Primitive, primitives
from retrograd._graph.node import Node
from retrograd._ops.levels import LevelPrimitive
from tests.ops import checks
from tests.ops.comparing import weight
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.strict import Strict, strict_namespace, unwrap, wrap
from tests.ops.test_all import each, on_all_samples

BASE_SLOTS = {name for cls in Node.__mro__ for name in getattr(cls, "__slots__", ())}


def nodes_of(outs: list[Any]) -> list[Any]:
    """Return the nodes of primitives in the graph of some tensors."""
    found: dict[int, Any] = {}
    stack = [out.grad_fn for out in outs if out.grad_fn is not None]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack += [one for one, _ in node.next_functions if one is not None]
    return [n for n in found.values() if isinstance(n, Node) and n.primitive is not None]


def inputs(op: Op, sample: Sample, dtype: str, chosen: Any = None) -> list[Any]:
    """Make inputs of one dtype; `chosen` says which require grad (None: all that can)."""
    made = []
    arrays = arrays_of(op, sample, "complex128" if dtype.startswith("complex") else "float64")
    for k, (array, is_input) in enumerate(zip(arrays, is_float(sample), strict=True)):
        weights = array.dtype.kind == "f" and not dtype.startswith("complex")  # constants of the inputs' kind
        one = checks.tensor(array.astype(dtype) if is_input or weights else array)
        made.append(one.requires_grad_() if is_input and (chosen is None or k == chosen) else one)
    return made


def gradients_at_nodes(op: Op, sample: Sample, dtype: str) -> Iterator[tuple[Any, Any]]:
    """Run a backward and return every node with the gradient it was given, as raw arrays."""
    outs = [o for o in checks.outputs(op.function(torch, sample, inputs(op, sample, dtype))) if o.requires_grad]
    nodes = nodes_of(outs)
    given: dict[int, Any] = {}
    for node in nodes:
        node.register_prehook(functools.partial(given.__setitem__, id(node)))
    seeds = [checks.tensor(weight(checks.array(o), 3).astype(o.dtype.numpy)) for o in outs]
    torch.autograd.backward(outs, seeds, retain_graph=True)
    for node in nodes:
        if id(node) in given:
            raw = tuple(None if g is None else g._array for g in given[id(node)])
            yield node, raw if node.primitive.outputs != 1 else raw[0]


def rules_of(node: Any) -> list[Any]:
    """Return the rules that a node's backward runs."""
    if node.primitive.group_rule is not None:
        return [node.primitive.group_rule]
    return [r for edge, r in zip(node._edges, node.rules, strict=False) if edge is not None and r is not None]


def saved_values(node: Any, rule: Any) -> SimpleNamespace:
    """Return what a rule reads from a node."""
    needed = tuple(edge is not None for edge in node._edges)
    return SimpleNamespace(**{name: needed if name == "needed" else getattr(node, name) for name in rule.names})


def results_of(value: Any) -> list[Any]:
    return [one for one in (value if isinstance(value, tuple) else (value,)) if one is not None]


# ---- the vocabulary ----
@each(DIFFERENTIABLE)
def test_vjp_rules_use_only_the_vocabulary(op: Op) -> None:
    def check(sample: Sample) -> None:
        for node, g in gradients_at_nodes(op, sample, "complex128" if op.complex else "float64"):
            if isinstance(node.primitive, LevelPrimitive):
                continue
            for rule in rules_of(node):
                values = saved_values(node, rule)
                wanted = rule.call(numpy_namespace, g, values)
                strict = SimpleNamespace(**{name: wrap(value) for name, value in vars(values).items()})
                got = rule.call(strict_namespace, wrap(g), strict)
                same(got, wanted, node.name())

    on_all_samples(op, check)


def same(got: Any, wanted: Any, what: str) -> None:
    for one, other in zip(results_of(got), results_of(wanted), strict=True):
        assert isinstance(one, Strict), f"{what}: a rule returns {type(one).__name__}"
        checks.close(unwrap(one), other, what, rtol=0, atol=0)


@each(DIFFERENTIABLE)
def test_jvp_rules_use_only_the_vocabulary(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    push_forward = Primitive.push_forward

    def recorded(self: Primitive, *args: Any) -> Any:
        calls.append((self, *args))
        return push_forward(self, *args)

    monkeypatch.setattr(Primitive, "push_forward", recorded)

    def check(sample: Sample) -> None:
        dtype = "complex128" if op.complex else "float64"
        arrays, floats = arrays_of(op, sample, dtype), is_float(sample)
        moving = checks.chosen(arrays, floats)
        calls.clear()
        checks.pushed(lambda *tensors: op.function(torch, sample, tensors), arrays, floats, checks.weights(moving, 2))
        for primitive, primals, tangents, out, params in list(calls):
            if all(isinstance(p, (np.ndarray, np.generic, int, float, complex)) for p in primals):
                check_jvp_rule(primitive, primals, tangents, out, params)

    on_all_samples(op, check)


def check_jvp_rule(primitive: Primitive, primals: Any, tangents: Any, out: Any, params: Any) -> None:
    """Run the rules of one forward-mode call on strict arrays and on plain ones."""
    values = primitive.named(primals) | params | {"out": out}

    def read(names: Any) -> list[Any]:
        return [core._read(values, name, primitive.inputs, primals) for name in names]

    if primitive.jvp_rule is not None:
        single = len(primitive.inputs) == 1 and not primitive.variadic
        t = tangents[0] if single else tuple(tangents)
        wanted = primitive.jvp_rule(numpy_namespace, t, *read(primitive.jvp_names))
        got = primitive.jvp_rule(strict_namespace, wrap(t), *[wrap(v) for v in read(primitive.jvp_names)])
        same(got, wanted, f"jvp of {primitive.name}")
    elif primitive.kind == core.ELEMENTWISE:
        for name, tangent in zip(primitive.inputs, tangents, strict=True):
            if tangent is not None and name in primitive.rules:
                rule = primitive.rules[name]
                t = np.broadcast_to(tangent, np.shape(out))
                wanted = rule.function(numpy_namespace, t, *read(rule.names))
                got = rule.function(strict_namespace, wrap(t), *[wrap(v) for v in read(rule.names)])
                same(got, wanted, f"jvp of {primitive.name}")


REFUSED = {"geqrf", "ldl_factor", "ldl_solve"}  # torch has no derivative of these, and their rules say so
FLAT = {"drawn_with_two", "replaced"}  # of random numbers: their gradients are zeros, tested in tests/random
THIRD_ORDER = {"cofactors_slope"}  # of det, tested in tests/linalg
DEVICES = {"to_device"}  # tested in tests/gpu
SAMPLES = {"each_sample", "seen_behind"}  # of views that leave vmap, of `.data` inside transforms; tested in tests/func
DRAWN = {"gamma_sample", "dirichlet_sample", "standard_gamma_grad", "dirichlet_grad"}  # tested in tests/distributions


def test_every_rule_was_run() -> None:
    """The table reaches every primitive with a derivative, at first or second order."""
    reached = set()
    for op in DIFFERENTIABLE:
        for sample in op.samples:
            for dtype in ("float64", "complex128") if op.complex else ("float64",):
                with contextlib.suppress(RuntimeError, IndexError):  # the other tests tell of these
                    given = inputs(op, sample, dtype)
                    outs = checks.outputs(op.function(torch, sample, given))
                    reached |= {node.primitive.name for node in nodes_of(outs)}
                    roots = [out for out in outs if out.requires_grad]
                    leaves = [one for one in given if one.requires_grad]
                    seeds = [torch.ones_like(root).requires_grad_() for root in roots]
                    grads = torch.autograd.grad(roots, leaves, seeds, create_graph=True, allow_unused=True)
                    reached |= {node.primitive.name for node in nodes_of([g for g in grads if g is not None])}
    declared = {p.name for p in primitives.values() if p.rules or p.group_rule}
    levels = {p.name for p in primitives.values() if isinstance(p, LevelPrimitive)}
    assert sorted(declared - levels - reached - REFUSED - FLAT - THIRD_ORDER - DEVICES - SAMPLES - DRAWN) == []


# ---- dtypes ----
KINDS = {"float32": ("float32", "complex64"), "float16": ("float16",), "bfloat16": ("bfloat16",)}


@each(DIFFERENTIABLE)
def test_rules_stay_in_float32(op: Op) -> None:
    """The raw result of a rule, before the edge casts it: no float64 sneaks in by a constant or a mean."""
    if "dtype" in op.name or op.name in (
        "double",
        "to_complex",
        "mixed_real_and_complex",
        "float_power",
        "float_power_",
    ):
        pytest.skip("changes dtype itself")

    def check(sample: Sample) -> None:
        for node, g in gradients_at_nodes(op, sample, "float32"):
            for rule in rules_of(node):
                for one in results_of(rule.call(numpy_namespace, g, saved_values(node, rule))):
                    assert str(one.dtype) in KINDS["float32"], f"{node.name()}: a rule gives {one.dtype}"

    on_all_samples(op, check)


# ---- what nodes keep ----
def holds_array(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(part, (np.ndarray, np.generic)) for part in parts)


@each(DIFFERENTIABLE)
def test_a_node_keeps_only_what_its_rules_read(op: Op) -> None:
    def check(sample: Sample) -> None:
        for k, is_input in enumerate(is_float(sample)):
            if not is_input:
                continue
            outs = checks.outputs(op.function(torch, sample, inputs(op, sample, "float64", k)))
            for node in nodes_of(outs):
                read = {name for rule in rules_of(node) for name in rule.names}
                slots = {s for cls in type(node).__mro__ for s in getattr(cls, "__slots__", ())} - BASE_SLOTS
                kept = {s for s in slots if holds_array(getattr(node, s, None))}
                assert kept <= read, f"{node.name()} keeps {sorted(kept - read)} for input {k} alone"

    on_all_samples(op, check)


# ---- the strict array itself ----
@pytest.mark.parametrize(
    "use",
    [
        lambda xp, x: x.sum(),
        lambda xp, x: x[0],
        lambda xp, x: x.T,
        lambda xp, x: x.astype("float32"),
        lambda xp, x: np.exp(x),
        lambda xp, x: np.asarray(x),
        lambda xp, x: np.ones(2) * x,
        lambda xp, x: x * np.ones(2),
        lambda xp, x: bool(x),
        lambda xp, x: list(x),
        lambda xp, x: len(x),
        lambda xp, x: xp.linspace(x),
        lambda xp, x: xp.sum(x, 0),
        lambda xp, x: xp.sum(x, axis=(0,), keepdims=False, where=True),
        lambda xp, x: xp.exp(np.ones(2)),
    ],
)
def test_strict_arrays_refuse(use: Any) -> None:
    with pytest.raises(TypeError):  # NotPromisedError is one; NumPy raises its own
        use(strict_namespace, Strict(np.ones(2)))


def test_strict_arrays_compute() -> None:
    x = Strict(np.array([1.0, 2.0]))
    result = strict_namespace.sum((2 - x) * x**2 / 2 + strict_namespace.exp(-x), axis=(0,), keepdims=False)
    assert unwrap(result) == 0.5 + np.exp(-1) + np.exp(-2)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2,), 1, 2, np.float64)
