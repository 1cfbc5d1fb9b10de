"""Random graphs of sums, views and shared gradients: nobody's memory becomes another's, with hooks, seeds, halves and large arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch

Step = Callable[[Any, Any], Any]
STEPS: list[Step] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a + 1,
    lambda a, b: -a,
    lambda a, b: a - b,
    lambda a, b: a.reshape(-1).view(a.shape),
    lambda a, b: a.t().contiguous().t(),
    lambda a, b: a.t().t(),
    lambda a, b: a.clone(),
    lambda a, b: a.sum().expand(a.shape) * 1e-3 + b,
    lambda a, b: a.tanh(),
    lambda a, b: torch.cat([a[:1], b[1:]]),
    lambda a, b: torch.where(a > 0, a, b),
    lambda a, b: torch.cat(list(a.split(2))),
]
LARGE = (700, 800)  # more than go through a rule at once
TOLERANCE = {"float64": 1e-9, "float32": 2e-3, "float16": 0.2, "bfloat16": 0.6}


def graph(seed: int, shape: tuple[int, int], dtype: str) -> tuple[list[Any], list[Any]]:
    """Return leaves, and what was computed of them."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    leaves = [torch.tensor(numbers.random(shape) - 0.5, dtype=getattr(torch, dtype)).requires_grad_() for _ in range(3)]
    pool = list(leaves)
    for _ in range(draw.randint(3, 9)):
        pool.append(draw.choice(STEPS)(draw.choice(pool), draw.choice(pool)))
    return leaves, [*pool, pool[-1] + pool[-2]]


@pytest.mark.parametrize("watched", ["nothing", "hooks", "retained"])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(1, 1), (3, 4), LARGE])
def test_gradients_are_right_and_nobody_elses(shape: tuple[int, int], dtype: str, watched: str) -> None:
    for seed in range(2 if shape == LARGE else 25):
        leaves, values = graph(seed, shape, dtype)
        given = torch.ones(shape, dtype=getattr(torch, dtype)) * 1.5
        expected = torch.autograd.grad(values[-1], leaves, given, create_graph=True, allow_unused=True)  # by rules
        leaves, values = graph(seed, shape, dtype)
        inner = [one for one in values if one.grad_fn is not None][::2]
        seen: list[tuple[Any, Any]] = []
        for one in inner:
            if watched == "hooks":
                one.register_hook(lambda g, seen=seen: seen.append((g, g.clone())))
            elif watched == "retained":
                one.retain_grad()
        before = [one.detach().clone() for one in values]
        values[-1].backward(given, retain_graph=True)
        for leaf, its in zip(leaves, expected, strict=True):
            assert (leaf.grad is None) == (its is None)
            assert its is None or close(leaf.grad, its.detach(), dtype)
        values[-1].backward(given)
        grads = [one.grad for one in (*leaves, *(inner if watched == "retained" else ())) if one.grad is not None]
        copies = [one.clone() for one in grads]
        for one, copy in zip(grads, copies, strict=True):
            one.fill_(7.0)
            copy.fill_(7.0)
            assert all(torch.equal(*pair) for pair in zip(grads, copies, strict=True))
        assert all(torch.equal(*pair) for pair in zip(values, before, strict=True))
        assert all(torch.equal(*pair) for pair in seen)
        assert torch.equal(given, torch.full_like(given, 1.5))


def close(one: Any, other: Any, dtype: str) -> bool:
    limit = TOLERANCE[dtype]
    return bool(torch.allclose(one.double(), other.double(), rtol=limit, atol=limit / 10))
