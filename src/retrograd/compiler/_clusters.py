"""Clusters: maps of large arrays, and sums of what they compute, as one formula. See Note [Formulas] in `_native/program.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._native.expression import Expr
from .._native.program import Formula
from .._native.trace import STORAGE, UntraceableError
from .._native.trace import Traced as Element
from ._lowering import FLOATS, Map, Reduction
from ._program import Step, Value

MOST_INPUTS = 24


def is_large(step: Step, what: Any) -> bool:
    """Tell whether a step, which is no part of a native program, can be part of a cluster."""
    if len(what) != 1:
        return False
    (node,) = what
    return (isinstance(node, Map) and len(node.operands) <= MOST_INPUTS) or (
        isinstance(node, Reduction) and node.out.dtype in FLOATS and node.operation in ("sum", "max", "min", "prod")
    )


def shape_of(what: Any) -> tuple[int, ...]:
    """Return the shape over which a step goes."""
    (node,) = what
    return node.operand.shape if isinstance(node, Reduction) else node.out.shape


def cluster_of(
    steps: list[Step], known: dict[Step, Any], outside: set[Value], readers: dict[Value, list[Step]]
) -> Step | None:
    """Make one step of several, or of those among them that are no reductions; None if there is no kernel for them together."""
    mine = set(steps)
    inputs: dict[Value, None] = {}
    made = {step.makes[0]: step for step in steps}
    for step in steps:
        for value in step.values:
            if value not in made:
                inputs[value] = None
    seen = {value for value in made if value in outside or any(user not in mine for user in readers.get(value, ()))}
    outputs = [value for value in made if value in seen or any(other.buffer is value.buffer for other in outside)]
    reduced = [value for value in outputs if isinstance(known[made[value]][0], Reduction)]
    if reduced and len(reduced) < len(outputs):  # a row would be gone over twice, by one thread
        rest = [step for step in steps if isinstance(known[step][0], Map)]
        return cluster_of(rest, known, outside, readers) if len(rest) > 1 else None
    given = list(inputs)
    if not outputs or len(given) > MOST_INPUTS or not any(v.shape == shape_of(known[steps[0]]) for v in given):
        return None
    formula = Formula(_formula(steps, known, given, outputs), (), (), False)
    samples = [_like(value) for value in given]
    plan = formula.plan(samples, {})
    if plan is None or not _fits(plan, outputs):
        return None
    result = Step("call", _caller(plan, outputs), "kernel", tuple(given), {}, name="kernel")
    result.makes, result.several, result.fused = outputs, True, steps
    result.read = tuple([(value, 0) for value in given])
    result.place = steps[0].place
    for value in outputs:
        value.step = result
    return result


def _like(value: Value) -> np.ndarray:
    """Return an array laid out as a value, for plans that look at shapes and strides."""
    whole = np.empty(1, value.dtype)
    return np.lib.stride_tricks.as_strided(whole, value.shape, value.strides)


def _formula(steps: list[Step], known: dict[Step, Any], given: list[Value], outputs: list[Value]) -> Callable[..., Any]:
    def cluster(xp: Any, *arrays: Any) -> Any:
        values: dict[Value, Any] = dict(zip(given, arrays, strict=True))
        for step in steps:
            (what,) = known[step]
            if isinstance(what, Map):
                operands = [values[one] for one in what.operands]
                axes = frozenset().union(*[one.axes for one in operands])
                values[step.makes[0]] = Element(xp, _replaced(what.expression, [one.expr for one in operands]), axes)
            else:
                total = xp._reduce(what.operation, values[what.operand], what.axes, True)
                values[step.makes[0]] = total / what.count if what.count != 1 else total
        return tuple([values[one] for one in outputs])

    return cluster


def _replaced(expression: Expr, inputs: list[Expr]) -> Expr:
    """Put other expressions in the place of an expression's inputs."""
    from .._native import expression as ex

    done: dict[Expr, Expr] = {}
    for node in ex.nodes_of(expression):
        if node.op == "input":
            found = inputs[node.detail]
            if found.type != node.type:
                raise UntraceableError("another type")
            done[node] = found
        else:
            args = tuple(done[a] for a in node.args)
            done[node] = node if args == node.args else ex.node(node.op, args, node.type, node.detail)
    return done[expression]


def _fits(plan: Any, outputs: list[Value]) -> bool:
    """Tell whether a plan makes its results as eager lays them out."""
    for (shape, dtype, order, _), value in zip(plan.made, outputs, strict=False):
        if math.prod(shape) != math.prod(value.shape) or dtype != value.dtype or value.dtype not in STORAGE:
            return False
        strides = (
            np.empty([shape[k] for k in order], dtype).transpose(np.argsort(order)).strides
            if order
            else np.empty(shape, dtype).strides
        )
        kept = [s for n, s in zip(shape, strides, strict=True) if n != 1]
        if kept != [s for n, s in zip(value.shape, value.strides, strict=True) if n != 1]:
            return False
    return True


def _caller(plan: Any, outputs: list[Value]) -> Callable[..., Any]:
    shapes = [value.shape for value in outputs]

    def call(*arrays: Any) -> tuple[Any, ...]:
        found = plan.run(arrays, {})
        return tuple(
            [one if one.shape == shape else one.reshape(shape) for one, shape in zip(found, shapes, strict=True)]
        )

    return call
