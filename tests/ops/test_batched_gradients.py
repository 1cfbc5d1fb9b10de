"""Every operation of the table pulling back several gradients at once: against a loop over them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import func
from tests.ops import checks
from tests.ops.infos import DIFFERENTIABLE
from tests.ops.opinfo import Op, Sample, arrays_of, is_float
from tests.ops.test_all import each, function, on_all_samples
from tests.ops.test_saved_values import through_numpy

ROWS = 3


def seeds_of(outs: list[Any]) -> list[list[Any]]:
    """Return several gradients for each output, row by row."""
    arrays = [checks.array(o) for o in outs]
    return [[checks.tensor(w) for w in checks.weights(arrays, 20 + row)] for row in range(ROWS)]


def check_batch(outs: list[Any], leaves: list[Any], graph: bool) -> None:
    """Compare a batch of gradients, and, with a graph, their gradients, with a loop."""
    rows = seeds_of(outs)
    options: dict[str, Any] = {"allow_unused": True, "retain_graph": True, "create_graph": graph}
    loop = [torch.autograd.grad(outs, leaves, row, **options) for row in rows]
    stacked = [torch.stack(column) for column in zip(*rows, strict=True)]
    batch = torch.autograd.grad(outs, leaves, stacked, is_grads_batched=True, **options)
    for k, got in enumerate(batch):
        if got is None:  # of an input that plays no part: not for a batch either
            assert all(row[k] is None for row in loop)
            continue
        checks.close(checks.array(got), np.stack([checks.array(row[k]) for row in loop]), f"input {k}", **checks.EXACT)
    if graph:
        again: dict[str, Any] = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
        squares = [(g * g).sum() for g in batch if g is not None and g.requires_grad]
        by_loop = [(g * g).sum() for row in loop for g in row if g is not None and g.requires_grad]
        if squares:
            pairs = zip(*(torch.autograd.grad(one, leaves, **again) for one in (squares, by_loop)), strict=True)
            for k, (got, wanted) in enumerate(pairs):
                checks.close(checks.array(got), checks.array(wanted), f"second order, input {k}", **checks.EXACT)


@each(DIFFERENTIABLE)
def test_a_batch_of_gradients(op: Op) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample), is_float(sample)
        for around, graph in ((nullcontext, False), (nullcontext, True), (through_numpy, False), (through_numpy, True)):
            with checks.saying(f"{around.__name__}, create_graph={graph}"):
                inputs = checks.leaves_of(arrays, floats)
                with around():
                    outs = [o for o in checks.outputs(f(*inputs)) if o.requires_grad]
                if outs:
                    check_batch(outs, checks.chosen(inputs, floats), graph)

    on_all_samples(op, check)


@each(DIFFERENTIABLE)
def test_jacobians_in_chunks(op: Op) -> None:
    def check(sample: Sample) -> None:
        f, arrays, floats = function(op, sample), arrays_of(op, sample), is_float(sample)
        inputs = [checks.tensor(a) for a in arrays]
        outs = checks.outputs(f(*inputs))
        moving = tuple(k for k, is_float in enumerate(floats) if is_float)
        if not outs or not outs[0].numel() or not moving or outs[0].is_complex():  # which jacrev refuses, as torch's
            return

        def first(*given: Any) -> Any:
            return checks.outputs(f(*given))[0]

        wanted = by_rows(first, arrays, floats)
        for size in (None, 1, 2):
            with checks.saying(f"chunk_size={size}"):
                got = func.jacrev(first, argnums=moving, chunk_size=size)(*inputs)
                for g, w in zip(got, wanted, strict=True):
                    checks.close(checks.array(g), w, "Jacobian", **checks.EXACT)

    on_all_samples(op, check)


def by_rows(f: Any, arrays: Any, floats: list[bool]) -> list[np.ndarray]:
    """Return the Jacobians of a function with one output, one element of it after the other."""
    inputs = checks.leaves_of(arrays, floats)
    leaves = checks.chosen(inputs, floats)
    out = f(*inputs)
    if not out.requires_grad:
        return [np.zeros((*out.shape, *leaf.shape)) for leaf in leaves]
    rows = []
    for k in range(out.numel()):
        seed = np.zeros(out.numel())
        seed[k] = 1
        seed = checks.tensor(seed.reshape(out.shape)).to(out.dtype)
        rows.append(checks.pulled([out], inputs, floats, [seed], False, keep=True))
    return [
        np.stack([checks.array(row[k]) for row in rows]).reshape((*out.shape, *leaf.shape))
        for k, leaf in enumerate(leaves)
    ]
