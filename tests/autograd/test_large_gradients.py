"""Rules of large arrays may write into a gradient that nobody needs any more: nobody may see it."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd._core.parallel import WIDE


def _values(seed):
    return np.random.default_rng(seed).standard_normal(WIDE).astype(np.float32)


def _leaf(seed):
    return rg.tensor(_values(seed), requires_grad=True)


def _expected(a, b):
    """Return the gradients of sum(tanh(-(a b)) * a), by hand."""
    t = np.tanh(-(a * b))
    inner = a * (1 - t * t)
    return t - inner * b, -inner * a


def test_values():
    a, b = _leaf(0), _leaf(1)
    for _ in range(2):  # the second time, methods are written and memory is reused
        a.grad = b.grad = None
        (rg.tanh(-(a * b)) * a).sum().backward()
        for leaf, expected in zip((a, b), _expected(_values(0), _values(1)), strict=True):
            np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=2e-5, atol=1e-5)  # 1 - t^2 loses digits


def test_the_seed_stays():
    a, b, seed = _leaf(0), _leaf(1), rg.tensor(_values(2))
    for _ in range(3):
        rg.tanh(a * b).backward(seed)
    np.testing.assert_array_equal(seed.numpy(), _values(2))
    rg.neg(a).backward(seed)
    np.testing.assert_array_equal(seed.numpy(), _values(2))


def test_what_hooks_and_retained_gradients_hold_stays():
    for _ in range(2):
        a, b, kept = _leaf(0), _leaf(1), []
        product = a * b
        product.retain_grad()
        bent = rg.tanh(product)
        bent.register_hook(kept.append)
        (-bent).sum().backward()
        np.testing.assert_array_equal(kept[0].numpy(), -np.ones(WIDE, np.float32))
        slope = 1 - np.tanh(_values(0) * _values(1)) ** 2
        np.testing.assert_allclose(product.grad.numpy(), -slope, rtol=1e-4, atol=1e-6)


def test_one_gradient_for_two_inputs():
    """A sum hands the same array to both: neither of their rules may write into it."""
    for _ in range(2):
        a, b = _leaf(0), _leaf(1)
        (rg.tanh(a) + (-b)).backward(rg.tensor(_values(2)))
        np.testing.assert_allclose(a.grad.numpy(), _values(2) * (1 - np.tanh(_values(0)) ** 2), rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(b.grad.numpy(), -_values(2))


def test_twice_through_a_kept_graph_and_by_grad():
    a, b = _leaf(0), _leaf(1)
    loss = (rg.tanh(-(a * b)) * a).sum()
    first = rg.autograd.grad(loss, (a, b), retain_graph=True)
    second = rg.autograd.grad(loss, (a, b), retain_graph=True)
    loss.backward()
    for one, two, leaf in zip(first, second, (a, b), strict=True):
        assert rg.equal(one, two)
        assert rg.equal(one, leaf.grad)


def test_numbers_and_other_dtypes():
    a = rg.tensor(_values(0).astype(np.float64), requires_grad=True)
    (rg.tanh(a * 2.0) * 3.0).sum().backward()
    np.testing.assert_allclose(
        a.grad.numpy(), 6 * (1 - np.tanh(2 * _values(0).astype(np.float64)) ** 2), rtol=1e-9, atol=1e-14
    )


def test_a_gradient_that_is_handed_on_is_not_written():
    """A difference hands its gradient to the first operand as it is, and negates it for the second."""
    for _ in range(2):
        a, b = _leaf(0), _leaf(1)
        (rg.tanh(a * 2) - b * 3).sum().backward()
        np.testing.assert_allclose(a.grad.numpy(), 2 * (1 - np.tanh(2 * _values(0)) ** 2), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(b.grad.numpy(), np.full(WIDE, -3.0, np.float32))
        x = _leaf(2)
        y = -(rg.tanh(a) - x)  # the gradient of the difference is the engine's own
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.ones(WIDE, np.float32))
        z, first = _leaf(3), _leaf(4)
        (rg.exp(-(first - z)) * 1.0).backward(rg.ones(WIDE))
        slope = np.exp(-(_values(4) - _values(3)))
        np.testing.assert_allclose(first.grad.numpy(), -slope, rtol=1e-5)
        np.testing.assert_allclose(z.grad.numpy(), slope, rtol=1e-5)


UNARY = "exp tanh sigmoid neg abs sqrt log sin cos relu square reciprocal rsqrt erf expm1 log1p".split()  # noqa: SIM905
BINARY = "add sub mul div atan2 maximum pow hypot logaddexp rsub".split()  # noqa: SIM905


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_large_arrays_have_the_gradients_of_their_halves(name):
    """Halves go the other way, array by array."""
    values = [np.abs(_values(k)) + 0.5 for k in range(3)]

    def gradients(weight, *inputs):
        leaves = [rg.tensor(v, requires_grad=True) for v in inputs]
        (getattr(rg, name)(*leaves) * rg.tensor(weight)).sum().backward()  # the product's gradient is the engine's own
        return [leaf.grad.numpy() for leaf in leaves]

    count = 1 if name in UNARY else 2
    for _ in range(2):
        large = gradients(*values[: 1 + count])
    halves = [gradients(*[v[part] for v in values[: 1 + count]]) for part in (slice(WIDE // 2), slice(WIDE // 2, None))]
    for found, *parts in zip(large, *halves, strict=True):
        np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-6, atol=2e-6)  # 1 - tanh^2 loses digits
