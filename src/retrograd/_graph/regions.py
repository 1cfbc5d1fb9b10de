"""The backward of neighbouring elementwise operations on large arrays, as one kernel.

Note [Regions]
Gradients between elementwise operations are as large as the values, and writing and reading them is what such a backward waits for. So
the rules of neighbouring nodes are one formula. A region begins at the node that the engine runs. A node below joins it if the last of
its gradients come from the region, nothing watches it, and its saved values are as they were. Results are the gradients that leave
the region, to leaves and to other nodes.
Inside, gradients are added in the engine's order, and each step is rounded as it would be outside. Only where nodes beside the region
give gradients to the same leaf may the order of a sum be another. A leaf with hooks ends a region before it begins: they run as soon as
the leaf has its gradient, perhaps between two nodes.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import numpy as np

from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import ELEMENTWISE, engine_state
from .._native.program import Formula
from .guards import Freed, fresh
from .large_backward import FIXED, hands_on

NDARRAY = np.ndarray
# How the engine counts the gradients that a node waits for: one is 1, k > 1 are 2 k.
SINGLE, STEP = 1, 2
MEMBERS: Final = 16  # nodes of a region: more would take long to compile
OPERANDS: Final = 16  # arrays that it reads
_TRUTH: Final = np.dtype(bool)


class _Step(NamedTuple):
    """What a region does at one of its nodes: a rule for each gradient, what the rule reads, and where its result goes."""

    rules: tuple[Any, ...]  # None: the gradient is handed on
    read: tuple[tuple[Any, ...], ...]  # operands by number, parameters by name
    targets: tuple[int, ...]  # a later step, or -1 - k for the k-th result
    held: int | None  # the operand to which the step's gradients are added: what has come from outside before


_formulas: dict[Any, Formula] = {}  # of all regions, by their steps


def pairs_of_region(first: Any, g: np.ndarray, freed: Freed | None, reuse: bool) -> list[tuple[Any, Any]] | None:
    """Compute the region that begins at a node: edges with their gradients; None if the node stands alone.

    `reuse`: nobody needs the gradient any more, and a result may be written into its memory. Saved values of the nodes below are let
    go, unless `freed` is None; `first` keeps its own.
    """
    found = _members(first, g) if g.dtype.char in "fd" else None  # half precision is rounded between operations
    if found is None:
        return None
    members, arrivals = found
    counts, pending = engine_state.task.counts, engine_state.task.pending
    numbers_of = {node: k for k, node in enumerate(members)}
    operands: dict[int, tuple[int, Any]] = {}  # by id: a value that two nodes have saved is read once
    params: dict[str, Any] = {}
    exits: list[Any] = []
    merged: dict[Any, int] = {}  # by edges that get all their gradients from here, and so one
    steps = []
    for k, node in enumerate(members):
        rules, read, targets = [], [], []
        for edge, rule in zip(node._edges, node.rules, strict=True):
            if edge is None or rule is None:
                continue
            if (target := numbers_of.get(edge)) is None and (target := merged.get(edge)) is None:
                exits.append(edge)
                target = -len(exits)
                if edge not in pending and _is_complete(edge, arrivals[edge], counts):
                    merged[edge] = target
            targets.append(target)
            rules.append(None if hands_on(rule) else rule.function)
            places: list[Any] = []
            for name in rule.names:
                value = getattr(node, name)
                if isinstance(value, NDARRAY | np.generic):
                    places.append(operands.setdefault(id(value), (len(operands) + 1, value))[0])
                else:
                    params[f"{name}_{k}"] = value
                    places.append(f"{name}_{k}")
            read.append(tuple(places))
        held = None
        if k and (before := pending.get(node)) is not None:
            held = operands.setdefault(id(before), (len(operands) + 1, before))[0]
        steps.append(_Step(tuple(rules), tuple(read), tuple(targets), held))
    untouched = _handed_on(steps, len(exits))
    numbers = tuple([n for n, v in params.items() if type(v) is float and n.rpartition("_")[0] not in FIXED])
    key = tuple(steps), untouched, numbers
    formula = _formulas.get(key)
    if formula is None:
        formula = _formulas[key] = _formula(steps, untouched, numbers)
    out = None
    if reuse and True not in untouched:
        out = [*[None for _ in exits[1:]], g]
    results = iter(
        formula.large(numpy_namespace, [g, *[value for _, value in operands.values()]], params, out)
        if False in untouched
        else ()
    )
    for edge in merged:
        if (seen := arrivals[edge]) > 1:
            counts[edge] -= STEP * (seen - 1)  # which arrive as one
    for node in members[1:]:
        pending.pop(node, None)
        if freed is not None and node.saves:
            node.release(freed)
    return [(edge, g if same else next(results)) for edge, same in zip(exits, untouched, strict=True)]


def _members(first: Any, g: np.ndarray) -> tuple[list[Any], dict[Any, int]] | None:
    """Return the nodes of a region, in the engine's order, and how many gradients each edge gets from it."""
    counts, pending = engine_state.task.counts, engine_state.task.pending
    arrivals: dict[Any, int] = {}
    members: list[Any] = []
    ready = [(-first.seq, id(first), first)]
    operands: set[int] = set()
    while ready:
        node = heappop(ready)[2]
        members.append(node)
        operands.update([id(getattr(node, name)) for name in node.array_names])
        for edge, rule in zip(node._edges, node.rules, strict=True):
            if edge is None or rule is None:
                continue
            seen = arrivals[edge] = arrivals.get(edge, 0) + 1
            if getattr(type(edge), "primitive", None) is None:
                if (extra := getattr(edge, "_extra", None)) is not None and extra.hooked:
                    return None
            elif (
                _is_complete(edge, seen, counts)
                and len(members) + len(ready) < MEMBERS
                and len(operands) < OPERANDS
                and _may_join(edge, g, pending.get(edge))
            ):
                heappush(ready, (-edge.seq, id(edge), edge))
    return None if len(members) == 1 else (members, arrivals)


def _is_complete(edge: Any, seen: int, counts: dict[Any, int]) -> bool:
    """Tell whether all gradients come from here that a node or leaf still waits for. One output of several is not asked for them."""
    left = counts.get(edge)
    return left == seen * STEP or (left == SINGLE and seen == 1)


def _may_join(node: Any, g: np.ndarray, held: Any) -> bool:
    """Tell whether a node's rules do to a gradient what they do in the straight backward, and nobody watches.

    `held` is what has come for it before.
    """
    if held is not None and (type(held) is not NDARRAY or held.dtype is not g.dtype or held.shape != g.shape):
        return False
    if node.primitive.kind != ELEMENTWISE or node.primitive.large_backward is None:
        return False
    if node.extra is not None or node.meta is not None or type(node.guard) is Freed or not fresh(node):
        return False
    if node.keeps_shapes and None not in node._edges and node.x.shape != node.y.shape:
        return False
    dtype, shape = g.dtype, g.shape
    for name in node.array_names:
        value = getattr(node, name)
        if isinstance(value, NDARRAY | np.generic) and (
            value.dtype not in (dtype, _TRUTH) or value.shape not in (shape, ())
        ):
            return False
    return True


def _handed_on(steps: list[_Step], count: int) -> tuple[bool, ...]:
    """Tell which results are the region's own gradient, unchanged."""
    same: dict[int, bool] = {0: True} | {k: False for k, step in enumerate(steps) if step.held is not None}
    for k, step in enumerate(steps):
        for rule, target in zip(step.rules, step.targets, strict=True):
            same[target] = target not in same and rule is None and same[k]
    return tuple([same[-1 - k] for k in range(count)])


def _formula(steps: list[_Step], untouched: tuple[bool, ...], numbers: tuple[str, ...]) -> Formula:
    """Return the rules of a region as a formula of its gradient and of what its nodes have saved."""

    def region_backward(xp: Any, *arrays: Any, **params: Any) -> tuple[Any, ...]:
        grads = {0: arrays[0]} | {k: arrays[step.held] for k, step in enumerate(steps) if step.held is not None}
        for k, step in enumerate(steps):
            for rule, read, target in zip(step.rules, step.read, step.targets, strict=True):
                grad = grads[k]
                if rule is not None:
                    grad = rule(xp, grad, *[arrays[r] if type(r) is int else params[r] for r in read])
                grads[target] = grads[target] + grad if target in grads else grad
        return tuple([grads[-1 - k] for k, same in enumerate(untouched) if not same])

    formula = Formula(region_backward, numbers, ())
    formula.elementwise = True  # also where it cannot be traced
    return formula
