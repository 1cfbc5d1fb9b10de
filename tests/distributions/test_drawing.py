"""Gamma, Dirichlet and binomial numbers: torch's stream, and slopes that solve the implicit equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd


def shapes_of_gamma(dtype: str) -> np.ndarray[Any, Any]:
    shapes = 5 * np.random.default_rng(0).random(400)
    shapes[::3] *= 0.2
    shapes[::7] *= 20
    return shapes.astype(dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_torchs(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    shapes = shapes_of_gamma(dtype)
    counts, chances = rng.integers(0, 200, 400).astype(dtype), rng.random(400).astype(dtype)
    chances[::5] *= 0.05
    drawn = []
    for library in (retrograd, torch):
        library.manual_seed(3)
        drawn.append(
            [
                library._standard_gamma(library.tensor(shapes)).numpy(),
                library._sample_dirichlet(library.tensor(shapes.reshape(-1, 4))).numpy(),
                library.binomial(library.tensor(counts), library.tensor(chances)).numpy(),
                library.rand(3).numpy(),  # the stream goes on where torch's does
            ]
        )
    for ours, theirs in zip(*drawn, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_slopes_of_gamma_numbers_keep_their_quantiles() -> None:
    shapes = retrograd.tensor(shapes_of_gamma("float64"), requires_grad=True)
    drawn = retrograd._standard_gamma(shapes)
    (slopes,) = retrograd.autograd.grad(drawn.sum(), shapes)
    a, x, step = shapes.detach().numpy(), drawn.detach().numpy(), 1e-6
    left = special.gammainc(a, x) < 0.5
    moved = [
        np.where(
            left,
            special.gammaincinv(a * k, special.gammainc(a, x)),
            special.gammainccinv(a * k, special.gammaincc(a, x)),
        )
        for k in (1 + step, 1 - step)
    ]
    sensible = x > 1e-30  # below it the quotient itself has no digits
    wanted = (moved[0] - moved[1]) / (2 * step * a)
    np.testing.assert_allclose(slopes.numpy()[sensible], wanted[sensible], 1e-5)


def test_slopes_by_torchs_names() -> None:
    """The inner functions by which torch's backward goes agree with the recorded slopes."""
    shapes = retrograd.tensor([[0.5, 2.0, 3.0]], dtype=retrograd.float64, requires_grad=True)
    drawn = retrograd._standard_gamma(shapes)
    (slopes,) = retrograd.autograd.grad(drawn.sum(), shapes)
    same = retrograd._standard_gamma_grad(shapes.detach(), drawn.detach())
    np.testing.assert_allclose(slopes.numpy(), same.numpy())
    with pytest.raises(NotImplementedError, match="the derivative for '_standard_gamma_grad' is not implemented"):
        retrograd.autograd.grad(retrograd._standard_gamma_grad(shapes, drawn).sum(), shapes)


@pytest.mark.oracle
def test_inner_slopes_are_near_torchs() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    alpha = (0.2 + 3 * rng.random((50, 3))).astype("float64")
    x = rng.dirichlet([1.0, 2.0, 3.0], 50)
    total = np.broadcast_to(alpha.sum(-1, keepdims=True), alpha.shape).copy()
    ours, theirs = (
        library._dirichlet_grad(*map(library.tensor, (x, alpha, total))).numpy() for library in (retrograd, torch)
    )
    np.testing.assert_allclose(ours, theirs, 3e-3, 1e-4)


def test_a_program_without_gradients_draws_plain_tensors() -> None:
    assert retrograd._standard_gamma(retrograd.ones(2)).grad_fn is None
    assert retrograd.distributions.Gamma(1.0, 1.0).sample().grad_fn is None
