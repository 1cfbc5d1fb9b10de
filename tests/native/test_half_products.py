"""Products of bfloat16 matrices by instructions for pairs of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd import _thresholds
from retrograd._native import half_products, machine, nests

pytestmark = pytest.mark.skipif(not machine.has_pairs(), reason="needs a processor that multiplies pairs of bfloat16")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def check(x, y, bias=None):
    found = half_products.multiplied(x, y, bias)
    assert found.dtype == x.dtype
    wide = np.matmul(x.astype(np.float64), y.astype(np.float64)) + (0 if bias is None else bias.astype(np.float64))
    assert found.shape == wide.shape
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=2**-8, atol=1e-4 * np.abs(wide).max())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("m", "k", "n"), [
    (100, 64, 64), (131, 65, 100), (1000, 3, 17), (37, 200, 33), (4, 512, 512), (7, 300, 31), (8, 256, 16), (9, 255, 95), (5, 700, 500),
])  # fmt: skip
def test_matrices_of_any_layout(monkeypatch, m, k, n, threads):
    """Tiles that are cut short, odd numbers of terms, transposed and strided memory."""
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    rows, columns = numbers(m, k), numbers(k, n, seed=1)
    for x in (rows, numbers(k, m).T, numbers(2 * m, 2 * k)[::2, ::2], rows[::-1], numbers(m, k + 3)[:, 1:-2]):
        for y in (columns, numbers(n, k).T, numbers(k, 3 * n)[:, ::3], columns[:, ::-1]):
            check(x, y)
    check(rows, columns, numbers(n, seed=2))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_matrices(monkeypatch, threads):
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(nests, "get_num_threads", lambda: threads)
    for m, k, n in ((16, 16, 16), (5, 19, 40), (70, 33, 17)):
        for x in (numbers(11, m, k), numbers(11, k, m).swapaxes(1, 2), numbers(1, m, k)[[0] * 11]):
            check(x, numbers(11, k, n, seed=1))
            check(x, numbers(11, n, k, seed=1).swapaxes(1, 2))
            check(x, numbers(k, n, seed=1))
    check(numbers(2, 3, 40, 30), numbers(2, 3, 30, 20, seed=1))


@st.composite
def whole_numbers(draw, shape):
    """An array of small whole numbers, of which sums of products are exact, that lies in memory in any way."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from((1, -1, 2))) for _ in shape]
    room = [shape[k] * abs(steps[k]) + draw(st.integers(0, 2)) for k in order]
    memory = np.random.default_rng(draw(st.integers(0, 99))).integers(-8, 9, room).astype(ml_dtypes.bfloat16)
    array = memory.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]
    return array[tuple(slice(n) for n in shape)]


@settings(max_examples=60)
@given(st.data())
def test_sums_of_whole_numbers_are_rounded_once(data):
    m, k, n = (data.draw(st.integers(least, 70)) for least in (4, 8, 16))
    lead = data.draw(st.sampled_from(((), (3,), (2, 2))))
    shared = data.draw(st.booleans())  # one second matrix for all first ones
    x, y = data.draw(whole_numbers((*lead, m, k))), data.draw(whole_numbers((k, n) if shared else (*lead, k, n)))
    bias = data.draw(whole_numbers((n,))) if y.ndim == 2 and data.draw(st.booleans()) else None
    found = half_products.multiplied(x, y, bias)
    if found is None:
        assert x.size * n < half_products.LEAST
        return
    exact = x.astype(np.int64) @ y.astype(np.int64) + (0 if bias is None else bias.astype(np.int64))
    np.testing.assert_array_equal(found, exact.astype(np.float32).astype(ml_dtypes.bfloat16))


def test_nan_and_infinity_reach_their_rows_and_columns_alone():
    x, y = numbers(40, 41), numbers(41, 42, seed=1)
    x[3, 4], y[7, 9] = np.inf, np.nan
    found = half_products.multiplied(x, y).astype(np.float32)
    assert np.isinf(found[3, :9]).all()
    assert np.isnan(found[:, 9]).all()
    rest = np.delete(np.delete(found, 3, 0), 9, 1)
    assert np.isfinite(rest).all()


def test_what_is_not_for_these_kernels():
    assert half_products.multiplied(numbers(4, 4), numbers(4, 4)) is None  # small
    assert half_products.multiplied(numbers(400, 400), numbers(400, 8)) is None  # narrow
    assert half_products.multiplied(numbers(1, 400), numbers(400, 400)) is None
    assert half_products.multiplied(*[numbers(400, 400).astype(np.float16)] * 2) is None
    assert half_products.multiplied(numbers(3, 400, 400), numbers(2, 400, 400)) is None


@pytest.mark.oracle
def test_layers_and_their_gradients_as_torchs():
    torch = pytest.importorskip("torch")
    found = []
    for library in (rg, torch):
        rng = np.random.default_rng(0)
        x, weight, bias, more = (
            library.tensor(rng.standard_normal(shape), dtype=library.bfloat16, requires_grad=True)
            for shape in ((4, 30, 70), (50, 70), (50,), (4, 50, 33))
        )
        out = library.nn.functional.linear(x, weight, bias) @ more
        found.append([out, *library.autograd.grad(out.float().square().mean(), (x, weight, bias, more))])
    for one, other in zip(*found, strict=True):
        one, other = one.detach().double().numpy(), other.detach().double().numpy()
        np.testing.assert_allclose(one, other, rtol=0.05, atol=0.02 * np.abs(other).max())
