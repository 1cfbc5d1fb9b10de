"""Weights used many times: the engine computes one product for the rows of many uses, which must show nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import _gathered
from retrograd.nn import functional as F  # noqa: N812 - torch's name
from retrograd.tensor._object.leaves import LeafDtypes


@pytest.fixture
def blocks(monkeypatch):
    """Count the blocks that are made."""
    monkeypatch.setattr(LeafDtypes, "wanted", False)  # another test may have asked for gradients of another dtype
    made = []
    init = _gathered.Block.__init__
    monkeypatch.setattr(_gathered.Block, "__init__", lambda self, *args: (made.append(self), init(self, *args))[1])
    return made


def _loop(steps, rows=3, width=4, dtype=rg.float64):
    """Return a loop's loss, its weights and bias, and the gradients by one use after the other in NumPy."""
    rng = np.random.default_rng(steps)
    w, b, h, *xs = (rng.standard_normal(s) for s in ((width, width), width, (rows, width), *[(rows, width)] * steps))
    weights, bias = (rg.tensor(v, dtype=dtype, requires_grad=True) for v in (w, b))
    hidden = rg.tensor(h, dtype=dtype)
    states = [h]
    for x in xs:
        hidden = rg.tanh(F.linear(hidden, weights, bias) + rg.tensor(x, dtype=dtype))
        states.append(np.tanh(states[-1] @ w.T + b + x))
    gw, gb, g = np.zeros_like(w), np.zeros_like(b), 2 * states[-1]
    for before, after in zip(reversed(states[:-1]), reversed(states[1:]), strict=True):
        g = g * (1 - after**2)
        gw, gb, g = gw + g.T @ before, gb + g.sum(0), g @ w
    return (hidden * hidden).sum(), weights, bias, gw, gb


@pytest.mark.parametrize("steps", [1, 7, 8, 9, 21, 22, 23, 100])  # a block has room for 21 uses of 3 rows
def test_sum_of_uses(steps, blocks):
    loss, weights, bias, gw, gb = _loop(steps)
    loss.backward()
    assert len(blocks) == (steps >= 8)
    np.testing.assert_allclose(weights.grad.numpy(), gw, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bias.grad.numpy(), gb, rtol=1e-10, atol=1e-12)


def test_float32_adds_to_what_is_there(blocks):
    loss, weights, bias, gw, gb = _loop(50, dtype=rg.float32)
    weights.grad, bias.grad = rg.ones(4, 4), rg.ones(4)
    loss.backward()
    assert blocks
    np.testing.assert_allclose(weights.grad.numpy(), gw + 1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(bias.grad.numpy(), gb + 1, rtol=1e-4, atol=1e-4)


def test_same_bits_with_a_kept_graph_and_from_grad():
    loss, weights, bias, *_ = _loop(50)
    by_grad = rg.autograd.grad(loss, (weights, bias), retain_graph=True)
    loss.backward(retain_graph=True)
    first = weights.grad.clone(), bias.grad.clone()
    weights.grad = bias.grad = None
    loss.backward()
    for one, two, three in zip(by_grad, first, (weights.grad, bias.grad), strict=True):
        assert rg.equal(one, two)
        assert rg.equal(two, three)


@pytest.mark.parametrize("first", [True, False])
def test_weights_used_elsewhere_before_or_after(first, blocks):
    loss, weights, bias, gw, gb = _loop(20)
    other = (weights**2).sum() + bias.sum()
    (other + loss if first else loss + other).backward()
    assert blocks
    np.testing.assert_allclose(weights.grad.numpy(), gw + 2 * weights.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(bias.grad.numpy(), gb + 1, rtol=1e-10)


def test_weights_that_are_computed(blocks):
    raw = rg.randn(4, 4, dtype=rg.float64, requires_grad=True)
    scale = rg.randn(4, dtype=rg.float64, requires_grad=True)

    def loss(raw, scale):
        weights, bias, h = raw * 0.5, scale + 1, rg.ones(2, 4, dtype=rg.float64)
        for _ in range(8):
            h = rg.sin(F.linear(h, weights, bias))
        return h.sum()

    assert rg.autograd.gradcheck(loss, (raw, scale))
    assert blocks


def test_one_bias_with_two_weights_and_two_biases_with_one(blocks):
    w, v, b, c = (rg.randn(*s, dtype=rg.float64, requires_grad=True) for s in ((3, 3), (3, 3), (3,), (3,)))

    def loss(w, v, b, c):
        h = rg.ones(2, 3, dtype=rg.float64)
        for _ in range(6):
            for weights, bias in ((w, b), (v, b), (w, c)):
                h = rg.sin(F.linear(h, weights, bias))
        return h.sum()

    assert rg.autograd.gradcheck(loss, (w, v, b, c))
    assert blocks


def test_hooks_see_the_whole_sum_once():
    loss, weights, bias, gw, gb = _loop(10)
    seen = []
    weights.register_hook(lambda g: seen.append(g.numpy().copy()) or g * 2)
    bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.numpy().copy()))
    loss.backward()
    assert len(seen) == 2
    assert {s.shape for s in seen} == {(4, 4), (4,)}
    np.testing.assert_allclose(weights.grad.numpy(), 2 * gw, rtol=1e-10)
    np.testing.assert_allclose(bias.grad.numpy(), gb, rtol=1e-10)


def test_second_order_and_few_uses_go_the_usual_way(blocks):
    loss, weights, *_ = _loop(12)
    (gw,) = rg.autograd.grad(loss, weights, create_graph=True)
    assert not blocks
    gw.sum().backward()
    assert weights.grad is not None
    loss, *_ = _loop(12, rows=_gathered.FEW_ROWS + 1)
    loss.backward()
    assert len(blocks) <= 1  # the first loss's graph, in the second backward


@pytest.mark.parametrize("steps", [3, 30])
def test_products_of_matrices(steps, blocks):
    rng = np.random.default_rng(0)
    w, h = rng.standard_normal((3, 3)) / 2, rng.standard_normal((4, 3))
    weights, state = rg.tensor(w, requires_grad=True), rg.tensor(h)
    states = [h]
    for _ in range(steps):
        state = rg.sin(state @ weights)
        states.append(np.sin(states[-1] @ w))
    state.sum().backward()
    g, expected = np.ones_like(h), np.zeros_like(w)
    for before in reversed(states[:-1]):
        g = g * np.cos(before @ w)
        expected, g = expected + before.T @ g, g @ w.T
    assert len(blocks) == (steps >= 8)
    np.testing.assert_allclose(weights.grad.numpy(), expected, rtol=1e-9)


def test_a_product_whose_matrix_was_overwritten_is_an_error():
    weights, h = rg.eye(3, requires_grad=True), rg.ones(2, 3)
    out = h.clone()
    for _ in range(6):
        h = h * 1.5
        out = out + h @ weights
    h += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
