"""Large arrays between float32 and half precision: the bits that NumPy's conversions make."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd._core.numpy_namespace import SINGLE, cast, numpy_namespace
from retrograd._native import machine
from retrograd._native.library import library
from retrograd._native.program import Formula

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_number_of_half_precision_is_read_exactly(half: Any) -> None:
    numbers = np.arange(1 << 16, dtype=np.uint16).view(half)
    np.testing.assert_array_equal(cast(numbers, SINGLE), numbers.astype(np.float32))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_numbers_between_are_rounded_to_even(half: Any) -> None:
    numbers = np.arange(1 << 16, dtype=np.uint16).view(half).astype(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    bits = numbers.view(np.int32)
    around = np.concatenate(
        [numbers, *[(bits + step).view(np.float32) for step in (-1, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000)]]
    )
    around = np.concatenate([around, np.array([np.inf, -np.inf, np.nan, 65519.99, 65520, 1e30, 1e-30], np.float32)])
    with np.errstate(over="ignore"):
        expected, found = around.astype(half), cast(around, half)
    assert found.dtype == half
    same = found.view(np.uint16) == expected.view(np.uint16)
    assert (same | (np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32)))).all()


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_arrays_in_other_orders_keep_them(half: Any) -> None:
    x = np.random.default_rng(0).normal(size=(130, 70, 3)).astype(np.float32)
    for view in (x.transpose(2, 0, 1), x[::2], x[:, ::-1], x.T):
        there = cast(view, half)
        np.testing.assert_array_equal(there, view.astype(half))
        np.testing.assert_array_equal(cast(there, SINGLE), view.astype(half).astype(np.float32))
        assert there.strides == view.astype(half).strides


def test_float64_of_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of every exponent, in any order in memory; conversions that NumPy is quick at are left to it."""
    used = []
    large = Formula.large
    monkeypatch.setattr(Formula, "large", lambda self, *args: used.append(self) or large(self, *args))
    x = np.arange(0, 1 << 32, 70001, np.int64).astype(np.uint32).view(np.float32)
    table = np.resize(x, (130, 70, 3))
    for view in (x, table.transpose(2, 0, 1), table[::2], table[:, ::-1], table.T, x[::3]):
        with np.errstate(invalid="ignore"):  # of NaN that signal
            expected = view.astype(np.float64)
        found = cast(view, np.dtype(np.float64))
        missing = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), missing)
        np.testing.assert_array_equal(found[~missing].view(np.int64), expected[~missing].view(np.int64))
        assert found.dtype == expected.dtype
        assert found.strides == expected.strides
    assert len(used) == 6 * machine.is_available()
    cast(np.ones(9000), SINGLE)
    assert len(used) == 6 * machine.is_available()


@pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_numbers_beside_half_precision_are_not_rounded_first(half: Any) -> None:
    """They come in float32, and the product is rounded once; NumPy would return float32."""
    x = np.random.default_rng(0).normal(size=9001).astype(half)
    product = library("multiply", np.multiply)
    assert product is not None
    found = product.large(x, np.float32(0.1))
    assert found.dtype == half
    np.testing.assert_array_equal(found, (x.astype(np.float32) * np.float32(0.1)).astype(half))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_truth_values_and_columns(half: Any) -> None:
    """A large condition, with numbers of which none is large."""
    chosen = np.random.default_rng(0).random((130, 70)) > 0.5
    np.testing.assert_array_equal(cast(chosen, half), chosen.astype(half))
    column = np.arange(130).astype(half)[:, None]
    found = numpy_namespace.where(chosen, column, column * 0)
    assert found.dtype == half
    np.testing.assert_array_equal(found, np.where(chosen, column, 0))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_half_precision_are_those_of_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    drawn = np.random.default_rng(1).normal(size=(6, 70, 90)).astype(np.float32)
    found: list[list[np.ndarray]] = []
    for lib in (rg, torch):
        x = lib.from_numpy(drawn.copy()).to(getattr(lib, dtype)).requires_grad_(True)
        outs = [
            x @ x.transpose(1, 2),
            x[0].t() @ x[1],
            lib.nn.functional.linear(x, x[2]),
            lib.einsum("bij,bkj->bik", x, x),
            lib.baddbmm(x[:, :, :70], x, x.transpose(1, 2)),
        ]
        sum((out.float() * 0.01).sum() for out in outs).backward()
        found.append([value.detach().float().numpy() for value in (*outs, x.grad)])
    for ours, theirs in zip(*found, strict=True):
        near = 0.02 if dtype == "bfloat16" else 0.003
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near * np.abs(theirs).max())


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("count", [1, 20_000])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_float64_is_rounded_to_half_precision_as_in_torch(half: str, count: int, torch: Any) -> None:
    """By way of float32: what lies a little above the middle of two numbers is first rounded to the middle."""
    middles = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-14 + 2.0**-25]
    numbers = [one + side * 2.0**-40 for one in middles for side in (-1, 0, 1)] * count
    given = [one.tensor(numbers, dtype=one.float64).to(getattr(one, half)).double().numpy() for one in (rg, torch)]
    np.testing.assert_array_equal(*given)
    if count == 1:
        compiled = rg.compile(lambda x: x.to(getattr(rg, half)))
        for _ in range(2):
            np.testing.assert_array_equal(compiled(rg.tensor(numbers, dtype=rg.float64)).double().numpy(), given[1])
