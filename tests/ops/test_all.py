"""Every operation of the table, without torch: finite differences, adjoints, batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.tensor import _table
from tests.ops import checks
from tests.ops.infos import ALIASES, DIFFERENTIABLE, OPS
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
WITHOUT_DERIVATIVE = [
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "bitwise_not",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "argmax",
    "argmin",
    "any",
    "all",
    "argsort",
    "nonzero",
    "floor_divide",
]
# as_strided refuses to be differentiated; the rest creates, draws or only reads
NOT_IN_TABLE = {"as_strided", "to", "item", "tolist", "numpy", "detach_", "requires_grad_"}


def test_every_name_is_in_the_table() -> None:
    known = {op.name for op in OPS} | ALIASES.keys() | NOT_IN_TABLE
    skipped = (_table._creation, _table._sampling, _table._asking)
    tables = (_table.BOTH, _table.FUNCTIONS, _table.METHODS)
    public = {n for t in tables for module, names in t.items() if module not in skipped for n in names.split()}
    public |= {f"{name}_" for name in _table.INPLACE_FROM_FUNCTIONS.split()}
    comparisons = set(
        [
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "logical_not",
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_not",
        ]
    )
    comparisons |= {"bitwise_and", "bitwise_or", "bitwise_xor"}
    public -= {f"{name}_" for name in comparisons}
    assert sorted(public - known) == []


def test_aliases_are_the_same_function() -> None:
    for alias, name in ALIASES.items():
        assert getattr(torch, alias) is getattr(torch, name), alias
        assert getattr(torch.Tensor, alias) is getattr(torch.Tensor, name), alias


def test_operations_without_derivative_are_marked() -> None:
    marked = {op.name for op in OPS if not op.differentiable} - {
        "nonzero_as_tuple",
        "operator_floordiv",
        "floor_divide_",
    }
    assert marked == set(WITHOUT_DERIVATIVE)
