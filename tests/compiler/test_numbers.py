"""Numbers of Python's that change from call to call: inputs of a program where they are only computed with, constants where they decide."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd as torch
import retrograd.nn.functional as F  # noqa: N812
from retrograd import nn

# What is computed with a float: one program serves all.
FLOATS: dict[str, Callable[[Any, float], Any]] = {
    "times": lambda x, k: x * k,
    "from the left": lambda x, k: k * x + k - x,
    "divided": lambda x, k: x / k + k / x,
    "power": lambda x, k: x.abs() ** k,
    "arithmetic before": lambda x, k: x * (2 * k + 1) / (1 - k / 7) - abs(-k) ** 2,
    "compared": lambda x, k: x * k if k > 100 else x / k,
    "a comparison of tensors": lambda x, k: (x > k).float() + torch.where(x < k, x, -x),
    "maximum": lambda x, k: x * max(k, 0.01) + min(3.0, k),
    "softmax": lambda x, k: F.softmax(x / k, dim=-1),
    "in place": lambda x, k: (x * 1).mul_(k).add_(k),
    "alpha": lambda x, k: x.add(x, alpha=2) * k,
    "a sum": lambda x, k: sum([x * k, x, k]),
    "a method": lambda x, k: x.mul(k).sub(k).div(k),
    "double precision": lambda x, k: x.double() * k,
    "complex steps between": lambda x, k: (x @ x.T * k).tanh().mean() * k,
}
# What needs to know which number it is: every number has a program, or the function takes them as they come.
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "a size": lambda x, k: x[: int(k) % 3 + 1],
    "an index": lambda x, k: x[int(k) % 2],
    "a range": lambda x, k: sum(x * i for i in range(int(k) % 4 + 1)),
    "math": lambda x, k: x * math.sqrt(k),
    "a text": lambda x, k: x * len(f"{k}"),
    "a key": lambda x, k: x * {k: 2.0}[k],
    "full": lambda x, k: x + torch.full((3,), k) + torch.tensor(k),
    "dropout": lambda x, k: F.dropout(x, min(0.9, k / 20)),
    "a slope": lambda x, k: F.leaky_relu(x, k) + F.elu(x, k),
    "clamp": lambda x, k: x.clamp(-k, k),
    "lerp": lambda x, k: x.lerp(x * 2, k),
    "norm": lambda x, k: F.layer_norm(x, (3,), eps=k) + x.norm(p=k),
    "half precision": lambda x, k: (x.bfloat16() * k).float() + (x.half() + k).float(),
    "integers": lambda x, k: (x * 10).int() + int(k),
    "rounded": lambda x, k: x * round(k, 1) + float(k) + (k // 1) + k % 2,
    "returned": lambda x, k: (x * 2, k, k + 1),
    "truth": lambda x, k: x if k else -x,
    "isinstance": lambda x, k: x * 2 if isinstance(k, float) else x * 3,
    "its type": lambda x, k: x * 2 if type(k) is float else x * 3,
    "compared with is": lambda x, k: x * 2 if k is not None else x,
    "arange": lambda x, k: x + torch.arange(0, 3 * k, k)[:3].sum(),
    "a scalar tensor": lambda x, k: x * torch.as_tensor(k) + torch.scalar_tensor(k),
    "a gradient": lambda x, k: torch.func.grad(lambda v: (v.sin() * k).sum())(x),
    "a batch": lambda x, k: torch.vmap(lambda v: v * k)(x),
    "a derivative forward": lambda x, k: torch.func.jvp(lambda v: v.pow(2) * k, (x,), (x,)),
    "written into items": lambda x, k: torch.zeros(2, 3).index_fill(0, torch.tensor([0]), k),
    "assigned": lambda x, k: assigned(x, k),
    "a power of a number": lambda x, k: k**x,
}


def assigned(x: Any, k: Any) -> Any:
    y = x.clone()
    y[0] = k
    y[1, 1] += k
    return y


VALUES = [0.5, 1.5, 2.5, 0.25, 3.0, -1.0, 0.0, 2.0, 7.5, 0.5]


def both(function: Any, compiled: Any, x: Any, *numbers: Any) -> None:
    sides = []
    for call in (function, compiled):
        torch.manual_seed(0)
        try:
            sides.append(call(x, *numbers))
        except Exception as error:
            sides.append(type(error))
    if isinstance(sides[0], type):
        assert sides[0] is sides[1]
        return
    torch.testing.assert_close(sides[1], sides[0], equal_nan=True)
    if isinstance(sides[0], torch.Tensor) and sides[0].requires_grad:
        grads = [torch.autograd.grad(side.sum(), x) for side in sides]
        torch.testing.assert_close(grads[1], grads[0], equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
def test_one_program_for_all_floats(name: str) -> None:
    compiled = torch.compile(FLOATS[name])
    torch.manual_seed(1)
    for k in [*VALUES, *[0.01 * n for n in range(1, 30)]]:
        both(FLOATS[name], compiled, torch.randn(2, 3, requires_grad=True), k)
    assert not compiled._compiled.reasons
    assert len(compiled._compiled.records) < 7  # the first number has one, what is compared others


@pytest.mark.parametrize("name", [*FLOATS, *OTHERS])
@pytest.mark.parametrize("kind", [float, int])
def test_numbers_are_eager_s(name: str, kind: Any) -> None:
    function = {**FLOATS, **OTHERS}[name]
    compiled = torch.compile(function)
    torch.manual_seed(1)
    for k in VALUES:
        for _ in range(2):
            both(function, compiled, torch.randn(2, 3, requires_grad=True), kind(k))


TABLE = {"shift": 0.5, "inner": [1.0, 2.0]}
RATE = 1.0


class Annealed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0
        self.options = SimpleNamespace(gain=2.0)
        self.steps = 0

    def forward(self, x: Any) -> Any:
        y = F.log_softmax(x / self.temperature, dim=-1) * self.options.gain
        return y * RATE + TABLE["shift"] * TABLE["inner"][1] - 0.5**self.steps


def test_numbers_that_a_function_reads() -> None:
    model = Annealed()
    compiled = torch.compile(model)
    run = compiled._compiled_forward._compiled
    for turn in range(40):
        model.temperature = 1.0 - 0.02 * turn
        model.options.gain = 2.0 if turn % 2 else 2.0 + turn
        model.steps = turn
        TABLE["shift"], TABLE["inner"][1] = 0.1 * turn, 2.0 + turn // 10
        globals()["RATE"] = 1.0 / (1 + turn)
        x = torch.randn(2, 3)
        torch.testing.assert_close(compiled(x), model(x))
        assert type(model.temperature) is float
        assert type(model.steps) is int
        assert type(RATE) is float
    assert not run.reasons
    assert len(run.records) < 8


def test_a_cell() -> None:
    rate = 0.5

    def step(x: Any) -> Any:
        return x * rate

    compiled = torch.compile(step)
    for turn in range(20):
        rate = 0.5 + turn
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), rate))
    assert len(compiled._compiled.records) == 2


def test_numbers_inside_of_structures() -> None:
    def f(x: Any, options: Any, *rates: Any, **more: Any) -> Any:
        return x * options["scale"] + rates[0] - more["shift"] * options["inner"][1]

    compiled = torch.compile(f)
    for turn in range(20):
        given = {"scale": 0.1 * turn, "inner": (1.0, 0.5 * turn), "name": "a"}
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, given, 2.0 + turn, shift=turn), f(x, given, 2.0 + turn, shift=turn))
    assert len(compiled._compiled.records) < 4


def test_a_number_that_leaks_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.compiler._numbers import Number

    monkeypatch.setattr(Number, "__float__", lambda self: self.thing)  # what would take a number for a constant

    def f(x: Any, k: float) -> Any:
        return x * math.sqrt(k)

    compiled = torch.compile(f)
    for turn in range(1, 20):
        x = torch.ones(2)
        torch.testing.assert_close(compiled(x, float(turn)), f(x, float(turn)))


def test_other_threads_see_plain_numbers() -> None:
    model = Annealed()
    compiled = torch.compile(model)
    seen, stop = set(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(type(model.temperature))

    watching = threading.Thread(target=look)
    watching.start()
    try:
        for turn in range(12):
            model.temperature = 1.0 + turn
            x = torch.randn(2, 3)
            torch.testing.assert_close(compiled(x), model(x))
    finally:
        stop.set()
        watching.join()
    assert seen == {float}


def test_gradients_and_numbers() -> None:
    def f(x: Any, k: float) -> Any:
        return (x * k).sin().sum(), (x**2 * k).sum()

    compiled = torch.compile(f)
    for turn in range(12):
        x = torch.randn(3, requires_grad=True)
        sides = []
        for call in (f, compiled):
            first, second = call(x, 0.5 + turn)
            (g,) = torch.autograd.grad(first, x, create_graph=True)
            sides.append((first, second, g, torch.autograd.grad(g.sum(), x), torch.autograd.grad(second, x)))
        torch.testing.assert_close(*sides)
