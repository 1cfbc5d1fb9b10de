"""Modules as functions, under transforms."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.func import functional_call, grad, stack_module_state, vmap


class Scale(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), value))
        self.register_buffer("shift", torch.full((), value))

    def forward(self, x):
        return x * self.weight + self.shift


def test_an_ensemble_by_vmap() -> None:
    models = [Scale(1.0), Scale(2.0)]
    parameters, buffers = stack_module_state(models)
    base = Scale(0.0)
    x = torch.arange(3.0)
    out = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(parameters, buffers)
    assert out.tolist() == [m(x).tolist() for m in models]
    assert base.weight.tolist() == [0.0, 0.0, 0.0]


def test_gradients_for_each_sample() -> None:
    model = Scale(1.5)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    buffers = dict(model.named_buffers())
    rows = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def loss(p, row):
        return (functional_call(model, (p, buffers), (row,)) ** 2).sum()

    found = vmap(grad(loss), in_dims=(None, 0))(parameters, rows)["weight"]
    for row, got in zip(rows, found, strict=True):
        model.zero_grad()
        (model(row) ** 2).sum().backward()
        assert got.tolist() == model.weight.grad.tolist()


def test_the_module_is_restored_after_an_error() -> None:
    model = Scale(2.0)
    kept = model.weight
    with pytest.raises(RuntimeError, match="must match the size"):
        functional_call(model, {"weight": torch.ones(3)}, (torch.ones(4),))
    assert model.weight is kept
