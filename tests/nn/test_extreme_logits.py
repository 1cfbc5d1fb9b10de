"""Losses of logits so large, or so far apart, that careless arithmetic loses the answer: against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.oracle

INF = float("inf")
ROWS = [
    [1e6, 1e6 - 1],
    [3e4, 3e4 + 0.5],
    [-1e6, -1e6 + 1],
    [1e4, -1e4],
    [1e38, -1e38],
    [88.8, 20.0],
    [0.0, 0.0],
    [INF, 0.0],
]
LOSSES = {
    "cross_entropy": "F.cross_entropy(x, t)",
    "cross_entropy, smoothed": "F.cross_entropy(x, t, label_smoothing=0.1)",
    "cross_entropy, half smoothed": "F.cross_entropy(x, t, label_smoothing=0.5, reduction='none')",
    "cross_entropy, smoothed, weighted": "F.cross_entropy(x, t, weight=w, label_smoothing=0.1)",
    "cross_entropy, smoothed, of many": "F.cross_entropy(x.repeat(9000, 10), t.repeat(9000), label_smoothing=0.1)",
    "cross_entropy of probabilities, smoothed": "F.cross_entropy(x, p, label_smoothing=0.1)",
    "binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits(x, p.round())",
    "binary_cross_entropy_with_logits, weighted": "F.binary_cross_entropy_with_logits(x, p.round(), pos_weight=w)",
    "nll_loss": "F.nll_loss(F.log_softmax(x, 1), t)",
    "mish": "F.mish(x)",
    "huber_loss": "F.huber_loss(x, p)",
    "logsumexp": "torch.logsumexp(x, 1)",
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_and_gradient(loss: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")

    def told(library: Any, row: list[float]) -> list[np.ndarray]:
        options = {"dtype": getattr(library, dtype)}
        x = library.tensor([row], requires_grad=True, **options)
        scope = {"torch": library, "F": library.nn.functional, "x": x, "t": library.tensor([1])}
        scope |= {"p": library.tensor([[0.3, 0.7]], **options), "w": library.tensor([0.3, 2.0], **options)}
        out = eval(loss, scope)
        return [out.detach().numpy(), library.autograd.grad(out.sum(), x)[0].numpy()]

    rtol = 1e-11 if dtype == "float64" else 2e-3 if "repeat" in loss else 4e-6  # of a sum of 90,000 terms
    for row in ROWS:
        for ours, theirs in zip(told(retrograd, row), told(torch, row), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, err_msg=str(row))


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_nan_in_one_row_does_not_spoil_the_others(function: str) -> None:
    torch = pytest.importorskip("torch")
    rows = [[float("nan"), 0.0], [1000.0, 999.0], [1.0, 2.0]]
    found = getattr(retrograd.nn.functional, function)(retrograd.tensor(rows), 1)
    expected = getattr(torch.nn.functional, function)(torch.tensor(rows), 1)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


def test_small_losses_of_sure_logits_keep_their_digits():
    """torch subtracts two large numbers there: 0.8 % off at -10, and 0 at -15."""
    x = np.array([-5.0, -10.0, -15.0, -20.0, -80.0], np.float32)
    loss = retrograd.nn.functional.binary_cross_entropy_with_logits
    found = loss(retrograd.tensor(x), retrograd.zeros(5), reduction="none").numpy()
    np.testing.assert_allclose(found, np.log1p(np.exp(x.astype(np.float64))), rtol=1e-6)
