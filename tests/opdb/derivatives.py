"""Gradients, gradients of gradients and tangents of both libraries."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

import retrograd
from tests.opdb import ops
from tests.opdb.calls import Call, OnlyOursError, Skipped, computed_by_both, each, exactly, few, samples, seed
from tests.opdb.comparing import DifferentError, check
from tests.opdb.limits import Limits
from tests.opdb.nearer import check_nearer, tensors_in

GRADIENT_DTYPES = (torch.float64, torch.complex128)
REVERSE_DTYPES = (*GRADIENT_DTYPES, torch.float32, torch.bfloat16)


def differentiable(op: Any, dtypes: tuple[Any, ...] = GRADIENT_DTYPES) -> list[Any]:
    return [d for d in dtypes if d in op.supported_backward_dtypes("cpu")]


def cotangents(outputs: list[Any], rng: np.random.Generator) -> list[tuple[np.ndarray, str]]:
    made = []
    for output in outputs:
        values = rounded(rng.standard_normal(tuple(output.shape)))
        if output.is_complex():
            values = values + 1j * rounded(rng.standard_normal(tuple(output.shape)))
        made.append((values.astype(_numpy_dtype(output)), str(output.dtype).removeprefix("torch.")))
    return made


def rounded(values: Any) -> Any:
    """Make numbers that every dtype holds."""
    return np.asarray(values).astype(ml_dtypes.bfloat16).astype(np.float64)


def _numpy_dtype(tensor: Any) -> Any:
    name = str(tensor.dtype).removeprefix("torch.")
    return np.dtype("float32" if name == "bfloat16" else name)


def tensor_of(given: tuple[np.ndarray, str], ours: bool) -> Any:
    values, dtype = given
    library = retrograd if ours else torch
    return library.tensor(values).to(getattr(library, dtype))


def gradients(call: Call, ours: bool, again: bool = False) -> list[Any]:
    """Return the gradients of every input that requires them; `again`: those of the gradients, too."""
    library = retrograd if ours else torch
    parts = call.parts(ours)
    inputs = [t for t in tensors_in(parts) if t.requires_grad]
    outputs = [o for o in tensors_in(call.run(ours, parts)) if o.requires_grad]
    if not outputs or not inputs:
        raise Skipped
    rng = np.random.default_rng(7)
    seeds = [tensor_of(c, ours).requires_grad_(again) for c in cotangents(outputs, rng)]
    first = list(library.autograd.grad(outputs, inputs, seeds, create_graph=again, allow_unused=True))
    if not again:
        return first
    grown = [g for g in first if g is not None and g.requires_grad]
    if not grown:
        raise Skipped
    weights = [tensor_of(c, ours) for c in cotangents(grown, rng)]
    return list(library.autograd.grad(grown, [*inputs, *seeds], weights, allow_unused=True))


def check_gradients(ours: list[Any], theirs: list[Any]) -> None:
    """Compare gradients; a missing one equals zeros, as for torch's users."""
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one is None or other is None:
            rest = other if one is None else one
            if rest is not None and bool((rest != 0).any()):
                raise DifferentError(f"gradient {k}: {'none' if one is None else 'given'}, torch has it otherwise")
            continue
        check(one, other, f"gradient {k}", loosened=10)


def compare_gradients(
    call: Call, compute: Callable[[Call, bool], list[Any]], ours: list[Any], theirs: list[Any]
) -> None:
    """Compare gradients, those of half precision as `nearer` does."""
    try:
        check_gradients(ours, theirs)
    except DifferentError as different:
        given = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
        if len(given) < len(ours):
            raise
        check_nearer([a for a, _ in given], [b for _, b in given], lambda: exactly(call, compute), 10, different)


def in_each_dtype(
    op: Any,
    limits: Limits,
    dtypes: list[Any],
    compute: Callable[[Call, bool], list[Any]],
    count: int | None = None,
    otherwise: Callable[[Call], None] | None = None,
) -> None:
    """Compare gradients or tangents of the samples of every dtype that has them; `otherwise`: what checks those torch has not."""

    def one(call: Call) -> None:
        try:
            ours, theirs = computed_by_both(call, lambda ours: compute(call, ours))
        except OnlyOursError:
            if otherwise is None:
                raise
            otherwise(call)
        else:
            compare_gradients(call, compute, ours, theirs)

    applies = False
    for dtype in dtypes:
        calls = itertools.islice(samples(op, dtype, limits, True, True), count)
        try:
            each(calls, one)
            applies = True
        except Skipped:
            continue
    if not applies:
        raise Skipped


def reverse(op: Any, limits: Limits) -> None:
    """Gradients."""
    if not op.supports_autograd:
        raise Skipped
    in_each_dtype(
        op, limits, differentiable(op, REVERSE_DTYPES if ops.left_out(op.name) == "nn" else GRADIENT_DTYPES), gradients
    )


def second(op: Any, limits: Limits) -> None:
    """Gradients of gradients, on a part of the samples."""
    if not op.supports_gradgrad or not op.supports_autograd:
        raise Skipped
    in_each_dtype(op, limits, differentiable(op), second_gradients, limits.second, second_by_differences)


def second_gradients(call: Call, ours: bool) -> list[Any]:
    return gradients(call, ours, again=True)


def second_by_differences(call: Call) -> None:
    """Confirm our gradients of gradients by finite differences of our gradients."""
    found = second_gradients(call, True)
    rng = np.random.default_rng(13)
    moves = [None if g is None else rounded(rng.standard_normal(tuple(g.shape))) for g in found]
    step = 1e-6
    after, before = (_weighted_gradients(call, moves, sign * step) for sign in (1, -1))
    expected = (after - before) / (2 * step)
    product = sum(float((g.detach().numpy() * d).sum()) for g, d in zip(found, moves, strict=True) if g is not None)
    if not np.isclose(product, expected, rtol=1e-4, atol=1e-5):
        raise DifferentError(f"{call}: finite differences give {expected}, not {product}")


def _weighted_gradients(call: Call, moves: list[Any], step: float) -> float:
    """Return the number that `gradients` differentiates again, at inputs and cotangents moved by a step."""

    def moved(values: list[Any], by: list[Any]) -> list[Any]:
        return [
            (v.detach() if d is None else v.detach() + retrograd.tensor(step * d)).requires_grad_()
            for v, d in zip(values, by, strict=True)
        ]

    parts = call.parts(True)
    old = [t for t in tensors_in(parts) if t.requires_grad]
    inputs = moved(old, moves[: len(old)])
    seed()
    outputs = tensors_in(call.run(True, replaced(parts, {id(o): n for o, n in zip(old, inputs, strict=True)})))
    outputs = [o for o in outputs if o.requires_grad]
    rng = np.random.default_rng(7)
    seeds = moved([tensor_of(c, True) for c in cotangents(outputs, rng)], moves[len(old) :])
    first = retrograd.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
    grown = [g for g in first if g is not None and g.requires_grad]
    weights = [tensor_of(c, True) for c in cotangents(grown, rng)]
    return sum(float((g * w).sum()) for g, w in zip(grown, weights, strict=True))


def tangent(call: Call, ours: bool) -> list[Any]:
    """Return the outputs' tangents, for tangents of every input that has a derivative."""
    library = retrograd if ours else torch
    parts = call.parts(ours)
    chosen = [t for t in tensors_in(parts) if t.requires_grad]
    if not chosen:
        raise Skipped
    rng = np.random.default_rng(11)
    primals = [t.detach() for t in chosen]
    tangents = [tensor_of(c, ours) for c in cotangents(primals, rng)]

    forward_ad = library.autograd.forward_ad
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(p, t) for p, t in zip(primals, tangents, strict=True)]
        swap = {id(old): new for old, new in zip(chosen, duals, strict=True)}
        outputs = tensors_in(call.run(ours, replaced(parts, swap)))
        found = []
        for output in outputs:
            if output.is_floating_point() or output.is_complex():
                pushed = forward_ad.unpack_dual(output).tangent
                found.append(None if pushed is None else pushed.detach().clone())
    return found


def replaced(value: Any, swap: dict[int, Any]) -> Any:
    if isinstance(value, (torch.Tensor, retrograd.Tensor)):
        return swap.get(id(value), value)
    if isinstance(value, dict):
        return {k: replaced(v, swap) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(v, swap) for v in value))
    if type(value) in (list, tuple):
        return type(value)(replaced(v, swap) for v in value)
    return value


def forward(op: Any, limits: Limits) -> None:
    """Tangents."""
    if not op.supports_forward_ad or not op.supports_autograd:
        raise Skipped
    in_each_dtype(op, limits, differentiable(op), tangent)


def forward_beyond(op: Any, limits: Limits) -> None:
    """Forward mode where torch has none: whether it runs here."""
    if op.supports_forward_ad or not op.supports_autograd or not differentiable(op):
        raise Skipped
    each(few(samples(op, differentiable(op)[0], limits, True, True), 3), lambda call: void(tangent(call, True)))


def void(_: Any) -> None:
    return None
