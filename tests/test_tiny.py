"""Twenty checks of the whole library in less than two seconds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import retrograd as torch

F64 = torch.float64


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=F64, requires_grad=True)


def test_creation_and_printing():
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert torch.zeros(2, 3).shape == (2, 3)
    assert torch.arange(3).dtype == torch.int64


def test_arithmetic_and_promotion():
    assert (torch.tensor([1, 2]) / 2).tolist() == [0.5, 1.0]
    assert (torch.tensor([1, 2]) + 1.5).dtype == torch.float32
    assert (torch.ones(2, dtype=F64) * torch.ones(2)).dtype == F64


def test_backward():
    x = leaf()
    (x * x.exp()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 + np.array([1, 2, 3.0])) * np.exp([1, 2, 3.0]))


def test_gradients_accumulate():
    x = leaf()
    for _ in range(3):
        (2 * x).sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_broadcasting_gradient():
    a, b = leaf(1.0), leaf()
    (a * b).sum().backward()
    assert a.grad.tolist() == [6.0]


def test_matrix_product():
    m = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (m @ m).sum().backward()
    assert m.grad.tolist() == [[7.0, 11.0], [9.0, 13.0]]


def test_indexing_gradient():
    x = leaf()
    (x[[0, 0, 2]] * 2).sum().backward()
    assert x.grad.tolist() == [4.0, 0.0, 2.0]


def test_views_and_in_place():
    x = leaf()
    y = x * 1
    y[:2].mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 1.0]


def test_overwritten_value_is_noticed():
    y = leaf() * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_second_backward_is_refused():
    y = leaf().exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_second_order():
    x = leaf()
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0, 18.0]


def test_no_grad_and_hooks():
    x = leaf()
    x.register_hook(lambda g: g * 10)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    x.sum().backward()
    assert x.grad.tolist() == [10.0] * 3


def test_custom_function():
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(0, 2)

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.saved_tensors[0] <= 2)

    x = leaf()
    Clip.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0]


def test_transforms():
    x = torch.tensor([1.0, 2.0], dtype=F64)
    assert torch.func.hessian(lambda v: (v**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert torch.func.vmap(torch.func.grad(lambda v: v**2))(x).tolist() == [2.0, 4.0]


def test_forward_mode():
    out, tangent = torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.ones(2),))
    assert (out.tolist(), tangent.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_reductions_and_joining():
    m = torch.arange(6.0).reshape(2, 3)
    assert m.max(1).values.tolist() == [2.0, 5.0]
    assert torch.cat([m.sum(0), m.mean(1)]).tolist() == [3.0, 5.0, 7.0, 1.0, 4.0]


def test_random_numbers_repeat():
    torch.manual_seed(0)
    first = torch.randn(3)
    torch.manual_seed(0)
    assert torch.equal(first, torch.randn(3))


def test_numpy_shares_memory():
    array = np.zeros(3)
    torch.from_numpy(array)[1] = 5.0
    assert array.tolist() == [0.0, 5.0, 0.0]


def test_copy_and_pickle():
    x = leaf()
    assert copy.deepcopy(x).requires_grad
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


def test_training_converges():
    x = torch.linspace(-1, 1, 32, dtype=F64)
    w = torch.zeros(2, dtype=F64, requires_grad=True)
    for _ in range(100):
        loss = ((w[0] * x + w[1] - (3 * x - 1)) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.5)
            w.grad = None
    np.testing.assert_allclose(w.detach().numpy(), [3.0, -1.0], atol=1e-6)
