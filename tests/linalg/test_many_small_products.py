"""Products of many small matrices, as they lie and transposed: values and gradients against float64."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.parametrize("shape", [(300, 5, 3), (2, 40, 32, 32), (6, 33, 40), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_transposed_operands(shape: tuple[int, ...], dtype: str) -> None:
    draws = np.random.default_rng(2)
    x, y = ((draws.normal(size=shape) * 8).astype(dtype) for _ in range(2))
    wide = "complex128" if dtype == "complex64" else "float64"
    left, right = rg.tensor(x), rg.tensor(y)
    for found, first, second in ((left @ right.mT, x, y.swapaxes(-1, -2)), (left.mT @ right, x.swapaxes(-1, -2), y)):
        np.testing.assert_allclose(found.numpy(), first.astype(wide) @ second.astype(wide), rtol=1e-5, atol=1e-3)


def test_gradients_of_transposed_operands_and_of_one_matrix_for_all() -> None:
    draws = np.random.default_rng(4)
    values, one = draws.normal(size=(200, 6, 7)), draws.normal(size=(6, 9))
    x, w = rg.tensor(values, requires_grad=True), rg.tensor(one, requires_grad=True)
    out = x.mT @ w.expand(200, 6, 9).mT.mT
    weights = draws.normal(size=out.shape)
    (out * rg.tensor(weights)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.einsum("bkn,mn->bmk", weights, one), rtol=1e-10)
    np.testing.assert_allclose(w.grad.numpy(), np.einsum("bmk,bkn->mn", values, weights), rtol=1e-10)
