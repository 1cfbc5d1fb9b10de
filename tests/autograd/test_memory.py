"""How much memory a graph keeps: no more than what torch saves, and a third of it with checkpoints."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.utils.checkpoint import checkpoint_sequential

LAYERS, WIDTH, BATCH = 64, 128, 512
ACTIVATION = BATCH * WIDTH * 4  # bytes


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.linear(x))


def kept_by(forward: Callable[[], Any]) -> tuple[int, int, Any]:
    """Return the bytes that are held after a forward, the most that were held during it, and the result."""
    gc.collect()
    tracemalloc.start()
    try:
        result = forward()
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held, peak, result


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Layer() for _ in range(LAYERS)))


def test_a_deep_network_keeps_one_activation_a_layer(model: Any) -> None:
    x = torch.randn(BATCH, WIDTH)
    held, peak, out = kept_by(lambda: model(x))
    # tanh keeps its result, which is the input that the next linear layer keeps: torch saves these and no more
    assert held < 1.02 * LAYERS * ACTIVATION
    assert peak < held + 3 * ACTIVATION
    out.sum().backward()
    assert held > LAYERS * ACTIVATION


def test_what_was_kept_is_gone_after_backward(model: Any) -> None:
    x = torch.randn(BATCH, WIDTH)

    def step() -> None:
        model(x).sum().backward()

    step()  # gradients are there from now on
    held, peak, _ = kept_by(step)
    assert held < ACTIVATION
    assert peak < 1.1 * LAYERS * ACTIVATION


def test_checkpoints_hold_a_third(model: Any) -> None:
    x = torch.randn(BATCH, WIDTH, requires_grad=True)
    model.zero_grad()
    whole, _, plain = kept_by(lambda: model(x))
    plain.sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    held, _, out = kept_by(lambda: checkpoint_sequential(model, 8, x, use_reentrant=False))
    assert held < 0.35 * whole
    gc.collect()
    tracemalloc.start()
    out.sum().backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held + peak < 0.35 * whole + 2 * sum(p.numel() * 4 for p in model.parameters())
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad, gradient)


@pytest.mark.oracle
def test_torch_saves_as_much() -> None:
    theirs = pytest.importorskip("torch")
    sizes = []
    for library in (torch, theirs):
        x, w, b = library.randn(64, 8), library.randn(8, 8, requires_grad=True), library.zeros(8, requires_grad=True)
        kept: dict[int, int] = {}

        def pack(tensor: Any, kept: dict[int, int] = kept) -> Any:
            kept[tensor.data_ptr()] = tensor.numel()
            return tensor

        with library.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            h = x
            for _ in range(3):
                h = library.tanh(library.nn.functional.linear(h, w, b))
        sizes.append(sum(kept.values()))
        del h
    assert sizes[0] <= sizes[1]


def test_a_seed_that_arrives_as_it_is_does_not_become_the_gradient() -> None:
    """Of two uses the second hands on nothing: what is left is the seed itself, which belongs to the caller."""

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x, seed = torch.ones(3, requires_grad=True), torch.ones(3)
    (x + Nothing.apply(x)).backward(seed)
    seed.zero_()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
