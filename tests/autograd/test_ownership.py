"""`.grad` owns its memory: writing into it reaches nobody else. See Note [Who owns a gradient]."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import retrograd as torch


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


def test_a_view_of_fresh_memory_is_taken_as_it_is() -> None:
    x = ones(2, 3)
    (x.view(-1) * 2).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    assert x.grad._array.base is not None  # the product itself, reshaped: no copy was made


def test_a_view_of_the_seed_is_copied() -> None:
    x, seed = ones(2, 3), torch.ones(6)
    x.view(-1).backward(seed)
    x.grad.zero_()
    assert seed.tolist() == [1.0] * 6


def test_a_view_of_a_retained_gradient_is_copied() -> None:
    x = ones(2, 3)
    h = x.view(-1) * 2
    h.retain_grad()
    h.view(3, 2).sum().backward()
    x.grad.zero_()
    assert h.grad.tolist() == [1.0] * 6


def test_what_a_hook_kept_is_copied() -> None:
    x = ones(2, 3)
    seen = []
    v = x.view(-1)
    v.register_hook(seen.append)
    (v * 2).sum().backward()
    x.grad.zero_()
    assert seen[0].tolist() == [2.0] * 6


def test_two_leaves_do_not_share() -> None:
    a, b = ones(4), ones(2, 2)
    (a.view(2, 2) + b).backward(torch.ones(2, 2))
    a.grad.zero_()
    assert b.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


class Times(torch.autograd.Function):
    """Multiply by 2; the gradient arrives as a 0-d array or as a number, which the engine adds in different ways."""

    @staticmethod
    def forward(ctx, x, as_array):
        ctx.as_array = as_array
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(np.array(2.0)) if ctx.as_array else g * 2, None


@pytest.mark.parametrize("kinds", list(itertools.product((True, False), repeat=4)))
def test_arrays_and_numbers_add_up(kinds: tuple[bool, ...]) -> None:
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    for target in (x, x.sin()):
        outs = [Times.apply(target, kind) for kind in kinds]
        (gradient,) = torch.autograd.grad(outs, target, retain_graph=True)
        assert gradient.item() == 8.0
        assert torch.autograd.grad(outs, x)[0].item() == pytest.approx(8.0 * (1 if target is x else math.cos(3.0)))
