"""Every operation of the table, without torch: finite differences, adjoints, batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.tensor._names import LATER, NOW
from tests.ops import checks
from tests.ops.infos import DIFFERENTIABLE, OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float, leaves

ROWS = 3
COMPLEX = [op for op in DIFFERENTIABLE if op.complex]


def each(ops: list[Op]) -> Any:
    return pytest.mark.parametrize("op", ops, ids=[op.name for op in ops])


def on_all_samples(op: Op, check: Callable[[Sample], None]) -> None:
    """Run a check on every sample and say in one message which of them fail, and how."""
    failures = []
    for sample in op.samples:
        try:
            check(sample)
        except Exception as error:  # everything that goes wrong is collected
            where = " ".join(getattr(error, "__notes__", ()))
            failures.append(f"{op.name}{sample}: {where} {type(error).__name__}: {str(error).strip()}")
    if failures:
        pytest.fail(f"{len(failures)} of {len(op.samples)} samples fail\n\n" + "\n\n".join(failures), pytrace=False)


def function(op: Op, sample: Sample) -> Callable[..., Any]:
    return lambda *tensors: op.function(torch, sample, tensors)


def differentiate(op: Op, check: Callable[..., None], dtype: str) -> None:
    on_all_samples(op, lambda sample: check(function(op, sample), arrays_of(op, sample, dtype), is_float(sample)))


@each(DIFFERENTIABLE)
def test_reverse_mode(op: Op) -> None:
    differentiate(op, checks.check_vjp, "float64")


@each(COMPLEX)
def test_reverse_mode_with_complex_numbers(op: Op) -> None:
    differentiate(op, checks.check_vjp, "complex128")


@each(DIFFERENTIABLE)
def test_forward_mode(op: Op) -> None:
    differentiate(op, checks.check_jvp, "float64")


@each(COMPLEX)
def test_forward_mode_with_complex_numbers(op: Op) -> None:
    differentiate(op, checks.check_jvp, "complex128")


@each(DIFFERENTIABLE)
def test_forward_and_reverse_mode_are_adjoint(op: Op) -> None:
    differentiate(op, checks.check_adjoint, "complex128" if op.complex else "float64")


@each(DIFFERENTIABLE)
def test_second_order(op: Op) -> None:
    differentiate(op, checks.check_second_order, "float64")


@each(COMPLEX)
def test_second_order_with_complex_numbers(op: Op) -> None:
    differentiate(op, checks.check_second_order, "complex128")


@each(DIFFERENTIABLE)
def test_forward_and_reverse_mode_nested(op: Op) -> None:
    differentiate(op, checks.check_forward_over_reverse, "float64")


# ---- vmap; warnings are errors, so falling back to a loop fails ----
def rows_of(op: Op, sample: Sample, dtype: str = "float64") -> list[list[np.ndarray]]:
    return [arrays_of(op, sample, dtype, row) for row in range(ROWS)]


def batchable(sample: Sample) -> list[bool]:
    return [getattr(leaf, "batched", True) for leaf in leaves(sample)]


BATCHING = [op for op in OPS if op.batching]
BATCHING_DIFFERENTIABLE = [op for op in DIFFERENTIABLE if op.batching]


@each(BATCHING)
def test_vmap(op: Op) -> None:
    on_all_samples(op, lambda s: checks.check_vmap(function(op, s), rows_of(op, s, dtype_for(op)), batchable(s)))


def dtype_for(op: Op) -> str:
    return "int64" if "bitwise" in op.name else "float64"


@each(BATCHING_DIFFERENTIABLE)
def test_gradients_and_vmap(op: Op) -> None:
    def check(sample: Sample) -> None:
        checks.check_vmap_of_grad(function(op, sample), rows_of(op, sample), batchable(sample), is_float(sample))

    on_all_samples(op, check)


@each(BATCHING_DIFFERENTIABLE)
def test_forward_mode_and_vmap(op: Op) -> None:
    def check(sample: Sample) -> None:
        checks.check_vmap_of_jvp(function(op, sample), rows_of(op, sample), batchable(sample), is_float(sample))

    on_all_samples(op, check)


# ---- the table covers the package ----
# They create, draw, convert, save or only read: compared with torch in tests/tensor, tests/random and test_signal_calls.py.
SKIPPED_FILES = {
    "_functions.creation",
    "_functions.ranges",
    "_storage.given_strides",
    "_object.exchange",
    "_object.old_types",
    "_functions.generators",
    "_functions.random_tensors",
    "_functions.random_fills",
    "_functions.random_distributions",
    "_object.questions",
}
SKIPPED_FILES |= {
    "_files.saving",
    "_storage.storages",
    "_storage.typed_storages",
    "_aliasing.setting",
    "_files.loading",
    "_functions.windows",
    "_functions.elements",
}
SKIPPED_FILES |= {"_functions.foreach"}  # an operation of the table on each tensor of a list
SKIPPED_FILES |= {"_object.old_names"}  # which torch has removed, and names of devices
SKIPPED_FILES |= {"_object.dense_answers"}  # what dense tensors answer to questions about other layouts
# sizes and indices, which no rule sees, are compared in tests/tensor/test_shapes.py and test_scattering.py
SHAPES = {
    "argwhere",
    "nonzero_static",
    "unravel_index",
    "resize_",
    "resize_as_",
    "tril_indices",
    "triu_indices",
    "broadcast_shapes",
    "detach_copy",
    "view_as_complex_copy",
}
# what functions of nn.functional in the table rest on: the same operation by torch's inner name, or dropping by channels
INNER = {
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "native_dropout",
    "native_channel_shuffle",
    "feature_dropout",
    "feature_alpha_dropout",
    "alpha_dropout",
    "affine_grid_generator",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "max_pool1d_with_indices",
    "convolution",
    "embedding_renorm",
}
# steps of rounding, products of integers, groups, segments, and extreme eigenvectors: compared with torch in
# tests/tensor/test_rarely_used_functions_torch.py
RARE = {
    "fake_quantize_per_tensor_affine",
    "fake_quantize_per_channel_affine",
    "segment_reduce",
    "_grouped_mm",
    "_int_mm",
    "lobpcg",
}
NOT_IN_TABLE = (
    SHAPES
    | INNER
    | RARE
    | {"to", "untyped_storage", "item", "tolist", "numpy", "detach_", "requires_grad_", "share_memory_"}
    | {"true_divide_"}  # calls div_
    | {"_conj", "_neg_view"}  # conj and imag, which the table has, are made of them
)


def test_every_name_is_in_the_table() -> None:
    names_of_ops = {op.name.removeprefix("nn_") for op in OPS}
    known = names_of_ops | {name.rpartition("_")[0] for name in names_of_ops} | NOT_IN_TABLE  # index_reduce_prod
    known |= {f"{name}_" for name in known}
    functions = {id(getattr(torch, name, None) or getattr(torch.Tensor, name, None)) for name in known}
    missing = []
    for module, names in (NOW | LATER).items():
        if module not in SKIPPED_FILES:
            in_place = [f"{name}_" for name in names.inplace.split()]
            for name in [*f"{names.both} {names.functions} {names.methods}".split(), *in_place]:
                function = getattr(torch, name, None) or getattr(torch.Tensor, name)
                if name not in known and id(function) not in functions:
                    missing.append(name)
    assert missing == []


def test_operations_without_derivative_record_nothing() -> None:
    for op in OPS:
        raises = "floor" in op.name or "unique" in op.name  # torch's node of it does
        if not op.differentiable and not raises and not op.name.endswith("_"):
            for sample in op.samples:
                given = [torch.tensor(a) for a in arrays_of(op, sample, dtype_for(op))]
                given = [t.requires_grad_() if t.is_floating_point() else t for t in given]
                out = op.function(torch, sample, given)
                results = out if isinstance(out, (tuple, list)) else [out]
                assert not any(isinstance(r, torch.Tensor) and r.requires_grad for r in results), op.name
