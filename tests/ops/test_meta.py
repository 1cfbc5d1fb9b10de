"""Every operation of the table on the meta device: shapes and dtypes of results and gradients are those of real numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops import infos_shape
from tests.ops.infos import OPS
from tests.ops.meta_results import facts, results
from tests.ops.opinfo import Op, leaves

# The shapes of their results depend on values, or they give numbers.
BY_VALUES = {"allclose", "bincount", "equal", "histogramdd", "index_mask", "index_mask_second", "masked_select", "nonzero",
             "nonzero_as_tuple", "repeat_interleave", "setitem_mask", "unique", "unique_consecutive"}  # fmt: skip
# They look at lengths, offsets or weights among their inputs on the CPU.
BY_LENGTHS = {
    "cov_counted",
    "cov_weighted",
    "ctc_loss",
    "fractional_max_pool",
    "gru",
    "lstm",
    "nn_embedding_bag",
    "rnn_relu",
    "rnn_tanh",
}


@pytest.mark.parametrize("op", [op for op in OPS if op.name not in BY_VALUES | BY_LENGTHS], ids=lambda op: op.name)
def test_shapes_of_results_and_gradients(op: Op) -> None:
    for sample in op.samples:
        try:
            expected = results(op, sample, "cpu")
        except RuntimeError:
            continue  # a sample that is only run another way
        found = results(op, sample, "meta")
        assert all(one.is_meta for one in found[0])
        assert _shapes_and_dtypes(found) == _shapes_and_dtypes(expected), str(sample)


def _shapes_and_dtypes(found: Any) -> list[Any]:
    return [[one and one[:2] for one in facts(part)] for part in found]


@pytest.mark.parametrize("op", infos_shape.OPS, ids=lambda op: op.name)
def test_strides_of_views(op: Op) -> None:
    for sample in op.samples:
        if any(getattr(leaf, "layout", "") == "strided" for leaf in leaves(sample)):
            continue  # which moving to another device makes dense
        assert facts(results(op, sample, "meta")[0]) == facts(results(op, sample, "cpu")[0]), str(sample)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("op", [op for op in OPS if op.name not in BY_VALUES | BY_LENGTHS], ids=lambda op: op.name)
def test_dtypes_of_results(op: Op, dtype: str) -> None:
    if dtype == "complex64" and not op.complex:
        return
    for sample in op.samples:
        try:
            expected = results(op, sample, "cpu", dtype)
        except (RuntimeError, TypeError):
            continue  # which has no values of that dtype
        assert _shapes_and_dtypes(results(op, sample, "meta", dtype)) == _shapes_and_dtypes(expected), str(sample)
