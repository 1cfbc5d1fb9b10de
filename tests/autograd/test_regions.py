"""Backwards of neighbouring elementwise operations that one kernel computes: Note [Regions] in `_graph/regions.py`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd._graph import regions
from retrograd._thresholds import REGION, WIDE

SIZE = max(REGION, WIDE) + 3

UNARY = ("tanh", "sigmoid", "exp", "neg", "sin", "square", "abs", "relu", "log1p", "sqrt")


def random_expression(seed: int) -> Callable[[Any, list[Any]], Any]:
    """Return a function of the library and of three leaves: twelve elementwise steps, some of which use what others use."""
    choices = random.Random(seed)
    plan = []
    for k in range(12):
        kind = choices.choice(("unary", "add", "sub", "mul", "number", "where", "clamp"))
        plan.append((kind, choices.choice(UNARY), *(choices.randrange(3 + k) for _ in range(2)), choices.random()))

    def call(lib: Any, leaves: list[Any]) -> Any:
        values = list(leaves)
        for kind, name, one, other, number in plan:
            x, y = values[one], values[other]
            if kind == "unary":
                x = x.abs() + 0.5 if name in ("log1p", "sqrt") else x
                made = getattr(lib, name)(x)
            elif kind == "where":
                made = lib.where(x > y, x, y * number)
            elif kind == "clamp":
                made = x.clamp(-number, 2)
            elif kind == "number":
                made = x * number + 0.25
            else:
                made = getattr(lib, kind)(x, y)
            values.append(made.clamp(-4, 4) if name == "exp" else made)
        return values[-1] + values[-2] * values[-3]

    return call


def leaves_of(lib: Any, dtype: str = "float32") -> list[Any]:
    generator = np.random.default_rng(0)
    return [lib.tensor(generator.normal(size=SIZE).astype(dtype)).requires_grad_() for _ in range(3)]


def gradients(call: Any, lib: Any, leaves: list[Any], **options: Any) -> list[Any]:
    call(lib, leaves).sum().backward(**options)
    return [None if leaf.grad is None else leaf.grad.detach().numpy().copy() for leaf in leaves]


def gradients_of_single_nodes(call: Any, dtype: str) -> list[Any]:
    hooked = leaves_of(retrograd, dtype)
    for leaf in hooked:
        leaf.register_hook(lambda g: None)  # with hooks, every node runs alone
    return gradients(call, retrograd, hooked)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(("dtype", "rounding"), [("float32", 1e-6), ("float64", 1e-14)])
def test_gradients_are_those_of_single_nodes(seed: int, dtype: str, rounding: float) -> None:
    call = random_expression(seed)
    found = gradients(call, retrograd, leaves_of(retrograd, dtype))
    for one, other in zip(found, gradients_of_single_nodes(call, dtype), strict=True):
        if one is None or other is None:
            assert one is other
        else:  # parts of a leaf's gradient may be added in another order
            np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding * 10)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(15))
def test_gradients_are_torchs(seed: int) -> None:
    torch = pytest.importorskip("torch")
    call = random_expression(seed)
    ours = gradients(call, retrograd, leaves_of(retrograd, "float64"))
    theirs = gradients(call, torch, leaves_of(torch, "float64"))
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def chain(lib: Any, leaves: list[Any]) -> Any:
    a, b, _ = leaves
    x = lib.tanh(a * b + a)
    x = lib.sigmoid(x - b) * x
    return lib.exp(-x * x) + x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_gives_the_bits_of_single_nodes(dtype: str) -> None:
    found = gradients(chain, retrograd, leaves_of(retrograd, dtype))
    for one, other in zip(found[:2], gradients_of_single_nodes(chain, dtype), strict=False):
        np.testing.assert_array_equal(one, other)


def test_a_chain_is_one_region(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    members = regions._members

    def counted(first: Any, g: Any) -> Any:
        answer = members(first, g)
        found.append(1 if answer is None else len(answer[0]))
        return answer

    monkeypatch.setattr(regions, "_members", counted)
    gradients(chain, retrograd, leaves_of(retrograd))
    assert found == [9]  # all but the sum at the end, which has nothing to compute


def test_saved_values_are_let_go_and_a_second_backward_is_refused() -> None:
    leaves = leaves_of(retrograd)
    loss = chain(retrograd, leaves).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_kept_graphs_give_the_same_again() -> None:
    leaves = leaves_of(retrograd)
    loss = chain(retrograd, leaves).sum()
    loss.backward(retain_graph=True)
    first = [leaf.grad.numpy().copy() for leaf in leaves[:2]]
    loss.backward()
    for leaf, before in zip(leaves[:2], first, strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), before + before)


def test_a_value_overwritten_below_is_an_error() -> None:
    a, b, _ = leaves_of(retrograd)
    x = a * b
    y = x.exp()
    z = (y * 2).sin()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_hooks_and_retained_gradients_inside_see_their_gradients() -> None:
    a, b, _ = leaves_of(retrograd)
    x = a * b
    y = x.sin()
    y.retain_grad()
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.clone()))
    (y * y).tanh().sum().backward()
    plain = leaves_of(retrograd)
    gradients(lambda lib, leaves: ((v := (leaves[0] * leaves[1]).sin()) * v).tanh(), retrograd, plain)
    np.testing.assert_allclose(a.grad.numpy(), plain[0].grad.numpy(), rtol=1e-6)
    assert len(seen) == 1
    np.testing.assert_allclose((seen[0] * b).detach().numpy(), a.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose((y.grad * x.cos()).detach().numpy(), seen[0].numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_a_graph_by_grad_and_of_two_roots() -> None:
    leaves = leaves_of(retrograd)
    expected = gradients(chain, retrograd, leaves_of(retrograd))
    out = chain(retrograd, leaves)
    found = retrograd.autograd.grad(out.sum(), leaves[:2])
    for one, other in zip(found, expected, strict=False):
        np.testing.assert_array_equal(one.numpy(), other)
    inner = leaves[0] * leaves[1]
    outer = inner.tanh().sin()
    both = retrograd.autograd.grad((outer, inner), leaves[:2], [retrograd.ones(SIZE)] * 2)
    x, y = (leaf.detach().numpy() for leaf in leaves[:2])
    slope = np.cos(np.tanh(x * y)) * (1 - np.tanh(x * y) ** 2) + 1
    np.testing.assert_allclose(both[0].numpy(), slope * y, rtol=1e-4, atol=1e-5)


def test_a_gradient_is_never_shared() -> None:
    a, b, _ = leaves_of(retrograd)
    ((a + b).tanh() + (a - b)).sum().backward()
    a.grad.zero_()
    assert b.grad.abs().sum() > 0
    seed = retrograd.ones(SIZE)
    c, d, _ = leaves_of(retrograd)
    ((c + d).tanh() + (c + d)).backward(seed)
    np.testing.assert_array_equal(seed.numpy(), np.ones(SIZE, np.float32))
    assert not np.shares_memory(c.grad.numpy(), d.grad.numpy())
