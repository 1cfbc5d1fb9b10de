"""Writes into an input or a result after the call: backward refuses only where torch does, and is never wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing
from tests.ops.comparing import attempt, inputs_of, parts  # noqa: E402
from tests.ops.infos import DIFFERENTIABLE  # noqa: E402
from tests.ops.opinfo import Op, Sample, arrays_of  # noqa: E402
from tests.oracle import Raised  # noqa: E402

pytestmark = pytest.mark.oracle

MODIFIED = "modified by an inplace operation"
# where torch keeps a copy that it has made, and we the tensor itself
KEEPS_THE_INPUT = {
    "take_along_dim": "torch copies the index",
    "take_along_dim_broadcast": "torch copies the index",
    "scaled_dot_product_attention": "torch scales queries and keys first",
    "attention_far_from_zero": "torch scales queries and keys first",
    "multi_head_attention": "torch makes a mask of floats",
    "cross_entropy": "torch keeps log-probabilities, which take as much memory again",
    "cross_entropy_weighted": "torch keeps log-probabilities",
    "cross_entropy_smoothed": "torch keeps log-probabilities",
    "group_norm_transposed": "torch copies into another layout",
    "polar": "torch's gradient of a size of zero, computed from the result, is not right",
    "einsum_by_numbers": "torch sums an operand first",
}


def one_each(op: Op) -> list[Sample]:
    """Return one sample with elements for each number of inputs, 0-d ones told apart."""
    found: dict[Any, Sample] = {}
    for sample in op.samples:
        arrays = arrays_of(op, sample)
        if all(one.size for one in arrays):
            found.setdefault(tuple(one.ndim == 0 for one in arrays), sample)
    return list(found.values())[:2]


def write(library: Any, tensor: Any) -> None:
    memory = tensor.detach()
    if memory.dtype is library.bool:
        memory.logical_not_()
    elif memory.is_floating_point() or memory.is_complex():
        memory.mul_(1.5).add_(0.25)
    else:
        memory.zero_()


def gradients(library: Any, op: Op, sample: Sample, written: int | None) -> Any:
    """Return the gradients after a write into one of the inputs and outputs, and how many of these there are."""
    leaves = inputs_of(library, op, sample, "float64")
    given = [leaf.clone() for leaf in leaves]
    tensors = [*given, *(outs := parts(op.function(library, sample, given)))]
    if written is not None:
        write(library, tensors[written])
    total = sum(
        (one.real if one.is_complex() else one).sum() * (k + 1) for k, one in enumerate(outs) if one.requires_grad
    )
    used = [leaf for leaf in leaves if leaf.requires_grad]
    grads = library.autograd.grad(total, used, allow_unused=True)
    return len(tensors), [np.zeros(leaf.shape) if g is None else g.numpy() for leaf, g in zip(used, grads, strict=True)]


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.oracle_dtypes != ()], ids=lambda op: op.name)
def test_a_write_is_refused_only_where_torch_refuses_it(op: Op) -> None:
    for sample in one_each(op):
        clean = attempt(gradients, retrograd, op, sample, None)
        if isinstance(clean, Raised):
            continue  # tests/ops/test_oracle.py compares refusals
        for written in range(clean[0]):
            ours = attempt(gradients, retrograd, op, sample, written)
            what = f"{op.name}{sample}, after a write into {written}"
            if not isinstance(ours, Raised):
                for got, wanted in zip(ours[1], clean[1], strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12, err_msg=what)
                continue
            if op.name in KEEPS_THE_INPUT:
                continue
            theirs = attempt(gradients, torch, op, sample, written)
            if not isinstance(theirs, Raised):  # in which case it must be torch that is wrong
                right = all(np.allclose(t, w, equal_nan=True) for t, w in zip(theirs[1], clean[1], strict=True))
                assert not right, f"{what}: {ours.words}"
