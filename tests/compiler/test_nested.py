"""Compiled functions and modules inside of compiled functions: they are part of the outer program, and what they read is guarded."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd import nn

FACTOR = 2.0


@torch.compile
def scaled(x: Any) -> Any:
    return x.tanh() * FACTOR


@torch.compile
def outer(x: Any) -> Any:
    return scaled(x).sum() + scaled(scaled(x)).mean()


def test_what_the_inner_function_reads_is_guarded() -> None:
    for factor in (2.0, 3.0, -1.0, 2.0):
        globals()["FACTOR"] = factor
        for _ in range(3):
            x = torch.randn(4, requires_grad=True)
            once = x.tanh() * factor
            expected = once.sum() + (once.tanh() * factor).mean()
            found = outer(x)
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(torch.autograd.grad(found, x), torch.autograd.grad(expected, x))
    assert len(outer._compiled.records) == 2  # for one number, and for all
    assert not outer._compiled.reasons
    globals()["FACTOR"] = 2.0


def test_an_inner_function_that_prints(capsys: Any) -> None:
    inner = torch.compile(lambda x: (print("inner"), x + 1)[1])
    call = torch.compile(lambda x: inner(x) * 2)
    for _ in range(3):
        assert call(torch.ones(2)).tolist() == [4, 4]
    assert capsys.readouterr().out == "inner\n" * 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.drop, self.gain = nn.Linear(4, 4), nn.Dropout(0.5), 2.0

    def forward(self, x: Any) -> Any:
        return self.drop(self.lin(x)).relu() * self.gain


class Net(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 1)
        if how == "compile()":
            for block in self.blocks:
                block.compile()
        elif how == "torch.compile":
            self.blocks = nn.ModuleList([torch.compile(block) for block in self.blocks])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x) * block.gain
        return self.head(x)


@pytest.mark.parametrize("how", ["compile()", "torch.compile"])
def test_compiled_modules_inside_a_step(how: str) -> None:
    seen = []
    for model, wrap in ((Net(""), lambda f: f), (Net(how), torch.compile)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = wrap(step)
        torch.manual_seed(1)
        found = []
        for turn in range(8):
            if turn == 3:
                model.blocks[0].gain = 0.5
            if turn == 5:
                model.eval()
            found.append(call(torch.randn(3, 4)))
        seen.append([found, [one.detach() for one in model.parameters()]])
    torch.testing.assert_close(*seen)
    assert not call._compiled.reasons
    assert len(call._compiled.records) == 3


def test_hooks_of_a_compiled_module_run() -> None:
    inner = torch.compile(nn.Linear(2, 2))
    calls = []
    call = torch.compile(lambda x: inner(x).sum())
    for _ in range(3):
        call(torch.ones(2))
    handle = inner.register_forward_hook(lambda *args: calls.append(1))
    for _ in range(3):
        call(torch.ones(2))
    assert len(calls) == 3
    handle.remove()
    inner._orig_mod.register_forward_hook(lambda *args: calls.append(1))
    for _ in range(3):
        call(torch.ones(2))
    assert len(calls) == 6


def test_a_disabled_function_inside() -> None:
    off = torch.compiler.disable(lambda x: x + 1)
    call = torch.compile(lambda x: off(x) * 2)
    for _ in range(3):
        assert call(torch.ones(2)).tolist() == [4, 4]
