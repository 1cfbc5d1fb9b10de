"""Gradient checkpointing: the same gradients, fewer kept values, one more forward pass."""

from __future__ import annotations

import math
import weakref

import pytest


def block(torch):
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.ff = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
            self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
            self.runs = 0

        def forward(self, x):
            self.runs += 1
            found, _ = self.attention(x, x, x)
            x = self.norm1(x + found)
            return self.norm2(x + self.ff(x))

    return Layer()


def checkpoint_of(torch):
    from importlib import import_module

    return import_module(f"{torch.__name__}.utils.checkpoint")


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_gradients_are_the_same_and_each_layer_runs_twice(torch, reentrant):
    checkpoint = checkpoint_of(torch).checkpoint
    layers = torch.nn.ModuleList([block(torch) for _ in range(3)])
    start = torch.randn(2, 5, 8, requires_grad=True)

    def gradients(keeps):
        layers.zero_grad()
        x = start
        for layer in layers:
            layer.runs = 0
            x = layer(x) if keeps else checkpoint(layer, x, use_reentrant=reentrant)
        (x * torch.arange(8)).sum().backward()
        return [p.grad.clone() for p in layers.parameters()], [layer.runs for layer in layers]

    plain, once = gradients(True)
    again, twice = gradients(False)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))
    assert once == [1, 1, 1]
    assert twice == [2, 2, 2]


def test_dropout_is_drawn_again_as_it_was(torch):
    checkpoint = checkpoint_of(torch).checkpoint
    drop, x = torch.nn.Dropout(0.5), torch.ones(100, requires_grad=True)
    out = checkpoint(lambda x: drop(x) * x, x, use_reentrant=False)
    out.sum().backward()
    assert torch.equal(x.grad, 2 * out.detach())  # mask / keep * x * 2, at x = 1


def test_nothing_is_recomputed_for_inference(torch):
    checkpoint = checkpoint_of(torch).checkpoint
    layer = block(torch)
    with torch.no_grad():
        out = checkpoint(layer, torch.ones(1, 2, 8), use_reentrant=False)
    assert not out.requires_grad
    assert layer.runs == 1


def test_the_choice_should_be_said(torch):
    checkpoint = checkpoint_of(torch).checkpoint
    x = torch.randn(10, requires_grad=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        out = checkpoint(lambda x, y: (x * y) ** 2, x, x)
    out.sum().backward()
    assert torch.allclose(x.grad, (4 * x**3).detach())


def test_square_root_of_the_layers_many_checkpoints(torch):
    checkpoint = checkpoint_of(torch).checkpoint
    layers = 64

    def alive_at_once(every):
        values = []
        most = 0

        def chain(x):
            nonlocal most
            for _ in range(every):
                x = x.sin()  # keeps its input
                values.append(weakref.ref(x if torch.__name__ == "torch" else x._array))
                most = max(most, sum(one() is not None for one in values))
            return x

        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        out = x
        for _ in range(layers // every):
            out = checkpoint(chain, out, use_reentrant=False) if every < layers else chain(out)
        out.sum().backward()
        return most, x.grad

    everything, plain = alive_at_once(layers)
    few, again = alive_at_once(int(math.sqrt(layers)))
    assert torch.equal(plain, again)
    assert everything == layers
    assert few <= 2 * math.sqrt(layers) + 2
