"""`.grad` owns its memory: writing into it reaches nobody else. See Note [Who owns a gradient]."""

from __future__ import annotations

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
