"""Every operation of the table on the meta device: shapes and dtypes of results and gradients are those of real numbers."""

from __future__ import annotations

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
        for ours, real in zip(found, expected, strict=True):
            assert [one and one[:2] for one in facts(ours)] == [one and one[:2] for one in facts(real)], str(sample)


@pytest.mark.parametrize("op", infos_shape.OPS, ids=lambda op: op.name)
def test_strides_of_views(op: Op) -> None:
    for sample in op.samples:
        if any(getattr(leaf, "layout", "") == "strided" for leaf in leaves(sample)):
            continue  # which moving to another device makes dense
        assert facts(results(op, sample, "meta")[0]) == facts(results(op, sample, "cpu")[0]), str(sample)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize(
    "op",
    [op for op in OPS if op.name in {"exp", "mul", "matmul", "sum", "softmax", "layer_norm", "where"}],
    ids=lambda op: op.name,
)
def test_dtypes_of_results(op: Op, dtype: str) -> None:
    for sample in op.samples:
        if dtype != "complex64" or op.complex:
            found, expected = (facts(results(op, sample, device, dtype)[0]) for device in ("meta", "cpu"))
            assert [one[:2] for one in found] == [one[:2] for one in expected], str(sample)
