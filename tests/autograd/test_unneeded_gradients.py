"""What nobody asked for is not computed; what is added in place is seen by nobody else."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.primitive import primitives
from retrograd._graph.node import node_class


@pytest.fixture
def rules_run(monkeypatch):
    """Count the calls of matmul's two rules on plain arrays."""
    calls = []
    matmul = primitives["matmul"]
    cls = node_class(matmul, "MmBackward0")

    def counted(self, g, graph, mask=None):
        grads = original(self, g, graph, mask)
        calls.append(tuple(grad is not None for grad in grads))
        return grads

    original = cls.pull_back_some
    monkeypatch.setattr(cls, "pull_back_some", counted)
    return calls


def test_grad_of_one_input_does_not_compute_the_others(rules_run):
    x, w, v = (torch.randn(3, 3, requires_grad=True) for _ in range(3))
    torch.autograd.grad(((x @ w) @ v).sum(), x)
    assert rules_run == [(True, False), (True, False)]


def test_grad_of_all_leaves_computes_all():
    x, w = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    gx, gw = torch.autograd.grad((x @ w).sum(), (x, w))
    np.testing.assert_allclose(gx.numpy(), np.ones((3, 3)) @ w.detach().numpy().T, rtol=1e-6)
    np.testing.assert_allclose(gw.numpy(), x.detach().numpy().T @ np.ones((3, 3)), rtol=1e-6)


@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("name", ["mul", "div", "pow", "atan2"])
def test_one_of_two_broadcast_operands(name, wanted):
    torch.manual_seed(0)
    inputs = [torch.rand(3, 1, dtype=torch.float64) + 1, torch.rand(4, dtype=torch.float64) + 1]
    both = [t.clone().requires_grad_() for t in inputs]
    one = getattr(torch, name)(*both).sum()
    expected = torch.autograd.grad(one, both, retain_graph=True)[wanted]
    found = torch.autograd.grad(one, both[wanted])[0]
    assert found.shape == inputs[wanted].shape
    assert torch.equal(found, expected)


def test_overwritten_weights_are_noticed_though_they_are_not_wanted():
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    out = layer(x).sum()
    with torch.no_grad():
        layer.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(out, x)


def test_sums_in_place_leave_what_others_hold_alone():
    x = torch.ones(5, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(seen.append)
    seed = torch.arange(5.0)
    (y + y * 3 + y.exp()).backward(seed)
    assert torch.equal(seed, torch.arange(5.0))
    np.testing.assert_allclose(seen[0].numpy(), seed.numpy() * (4 + np.exp(2.0)), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), seen[0].numpy() * 2)


def test_a_gradient_that_a_rule_passes_on_is_not_added_to():
    x = torch.ones(3, requires_grad=True)
    kept = []

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            grad = g * 2
            kept.append(grad)
            return grad

    (Keep.apply(x) + x * 5).sum().backward()
    assert torch.equal(kept[0], torch.full((3,), 2.0))
    assert torch.equal(x.grad, torch.full((3,), 7.0))
