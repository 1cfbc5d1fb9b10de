"""Transforms in and around compiled functions: what is read inside of them is guarded, and what they give is eager's."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import nn
from retrograd.func import functional_call, grad, hessian, jacrev, vmap

FACTOR = 2.0


def used(compiled: Any) -> Any:
    return compiled._compiled


def test_what_a_transformed_function_reads_is_guarded() -> None:
    def f(x: Any) -> Any:
        return (x.sin() * FACTOR).sum()

    x = torch.tensor([0.5, -1.0, 2.0])
    for transform in (grad, hessian, lambda g: vmap(grad(lambda v: v.exp() * g(v[None])))):
        compiled = torch.compile(transform(f))
        for factor in (2.0, 3.0, 2.0, -1.0):
            globals()["FACTOR"] = factor
            for _ in range(2):
                torch.testing.assert_close(compiled(x), transform(f)(x))
        assert len(used(compiled).records) == 3
        assert not used(compiled).reasons
    globals()["FACTOR"] = 2.0


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.b = self.a

    def forward(self, x: Any) -> Any:
        return x * self.b


def test_weights_that_are_no_longer_tied() -> None:
    model = Tied()

    def f(params: Any, x: Any) -> Any:
        return functional_call(model, params, (x,)).square().sum()

    compiled = torch.compile(f)
    params, x = {"a": torch.tensor([3.0, 4.0])}, torch.tensor([1.0, -1.0])
    for _ in range(3):
        assert compiled(params, x).item() == 25
    model.a = nn.Parameter(torch.tensor([5.0, 6.0]))  # it is read nowhere, but b is not replaced any more
    for _ in range(3):
        assert compiled(params, x).item() == 5
    assert not used(compiled).reasons


def test_modules_that_watch_what_is_assigned_run_in_eager() -> None:
    seen = []

    class Watching(Tied):
        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    model = Watching()
    compiled = torch.compile(lambda x: functional_call(model, {"a": x, "c": x}, (x,)).sum())
    seen.clear()
    for turn in range(3):
        compiled(torch.ones(2))
        assert seen == ["c"] * (turn + 1)


def test_structures_of_results() -> None:
    def f(x: Any) -> Any:
        out = vmap(lambda v: {"a": (v.sum(), v * 2), "b": [v.max()]})(x)
        rows = jacrev(lambda v: {"p": v * 2, "q": v.sum()})(x[0])
        return out["a"][0] + out["b"][0].abs() + rows["p"].sum() + rows["q"].mean(), out

    compiled = torch.compile(f)
    for x in (torch.randn(3, 4), torch.randn(3, 4), torch.randn(2, 5)):
        torch.testing.assert_close(compiled(x), f(x))
    assert len(used(compiled).records) == 2
    assert not used(compiled).reasons
