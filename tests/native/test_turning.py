"""Large arrays that lie the other way in memory: copies, and operations on them beside others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd import _thresholds
from retrograd._native import machine, nests, turning

needs_llvm = pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
DTYPES = [np.dtype(t) for t in (bool, np.float16, ml_dtypes.bfloat16, np.int32, np.float32, np.float64, np.complex64)]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 50).astype(dtype)


@needs_llvm
@settings(max_examples=60)
@given(st.data())
def test_copies_have_the_same_elements(data: st.DataObject) -> None:
    """Any axes moved, reversed or cut, in every width of elements."""
    shape = data.draw(st.sampled_from(((100, 100), (16, 700), (700, 17), (3, 50, 70), (2, 3, 40, 50), (1, 200, 64, 1))))
    x = numbers(shape, data.draw(st.sampled_from(DTYPES)))
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    x = x[tuple(slice(data.draw(st.integers(0, n // 8)), None) for n in x.shape)]
    x = x[tuple(slice(None, None, data.draw(st.sampled_from((1, -1)))) for _ in x.shape)]
    found = turning.copied(x)
    if found is None:
        far = abs(x.strides[-1]) >= turning.LINE and x.size >= _thresholds.NATIVE
        assert not far or x.itemsize not in x.strides or min(x.shape[-1], x.shape[x.strides.index(x.itemsize)]) < 16
        return
    assert found.flags.c_contiguous
    assert found.dtype == x.dtype
    assert found.tobytes() == x.tobytes()


@needs_llvm
def test_threads_share_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: 3)
    x = numbers((5, 300, 200), np.float32).swapaxes(1, 2)
    found = turning.copied(x)
    assert found is not None
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operands_that_lie_across_each_other(dtype: str) -> None:
    x, y = numbers((130, 90), np.float32), numbers((90, 130), np.float32, 1)
    half = np.float32 if dtype == "float32" else ml_dtypes.bfloat16
    wide = [a.astype(half).astype(np.float32) for a in (x, y.T)]
    ours = [rg.from_numpy(a).to(getattr(rg, dtype)) for a in (x, y)]
    assert (ours[0] + ours[1].t()).stride() == (90, 1)
    for one, other in ((ours[0], ours[1].t()), (ours[1].t(), ours[0])):
        for function in (rg.add, lambda a, b: rg.where(a > b, a * b, b), lambda a, b: a.clone().add_(b)):
            assert rg.equal(function(one, other), function(one.contiguous(), other.contiguous()))
    np.testing.assert_array_equal(
        (ours[0] + ours[1].t()).float().numpy(), (wide[0] + wide[1]).astype(half).astype(np.float32)
    )


def test_a_matrix_and_its_own_transpose() -> None:
    x = numbers((120, 120), np.float32)
    ours = rg.from_numpy(x.copy())
    np.testing.assert_array_equal((ours - ours.t()).numpy(), x - x.T)
    np.testing.assert_array_equal(ours.t().contiguous().numpy(), x.T)
    np.testing.assert_array_equal(ours.mul_(ours.t().clone()).numpy(), x * x.T)


@pytest.mark.parametrize("shape", [(600, 16, 16), (3, 100, 20, 24), (40, 32, 17), (500, 5, 6)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_many_small_transposed_matrices(monkeypatch: pytest.MonkeyPatch, shape: Any, dtype: Any) -> None:
    found = []
    copied = turning.copied
    monkeypatch.setattr("retrograd._native.library.turned", lambda x: found.append(copied(x)) or found[-1])
    x, y = numbers(shape, dtype), numbers(shape, dtype, 1)
    ours = (rg.from_numpy(x) @ rg.from_numpy(y).mT, rg.from_numpy(x).mT @ rg.from_numpy(y))
    wanted = np.einsum("...ik,...jk->...ij", x, y), np.einsum("...ki,...kj->...ij", x, y)
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-2)
    assert [one is None for one in found] == [min(shape[-2:]) < 16 or not machine.is_available()] * 2
