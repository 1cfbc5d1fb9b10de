"""Python state that changes between calls: whatever is changed, compiled functions give what eager gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as torch
from retrograd import nn

FACTOR = 1.5
TABLE = {"shift": 0.25, "names": ["a", "b"]}
WEIGHTS = torch.tensor([1.0, -2.0, 0.5])


def power(x: Any) -> Any:
    return x * x


def other_power(x: Any) -> Any:
    return x * x * x


USED = power


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.scale = 2.0
        self.options = SimpleNamespace(sign=1)

    def forward(self, x: Any, bias: Any = None, *, twice: bool = False) -> Any:
        y = self.drop(self.inner(x)) * self.scale + WEIGHTS * FACTOR
        if bias is not None:
            y = y + bias
        if TABLE["shift"] > 0:
            y = y + TABLE["shift"]
        if twice:
            y = y * 2
        return USED(y).sum(-1) if self.training else USED(y) * FACTOR


def change_global(model: Any, number: int) -> None:
    globals()["FACTOR"] = [1.5, -0.5, 0.0, -0.0, 2][number % 5]


def change_table(model: Any, number: int) -> None:
    TABLE["shift"] = [0.25, -1.0, 0][number % 3]


def change_function(model: Any, number: int) -> None:
    globals()["USED"] = [power, other_power][number % 2]


def change_attribute(model: Any, number: int) -> None:
    model.scale = [2.0, 3.0, 2][number % 3]


def change_mode(model: Any, number: int) -> None:
    model.train(bool(number % 2))


def change_numbers(model: Any, number: int) -> None:
    with torch.no_grad():
        model.inner.weight.add_(0.1 * number)
        WEIGHTS.mul_(-1)


def change_parameter(model: Any, number: int) -> None:
    model.inner.bias = None if number % 2 else nn.Parameter(torch.full((3,), 0.1 * number))


def change_tensor(model: Any, number: int) -> None:
    globals()["WEIGHTS"] = torch.arange(3.0) - number


def change_module(model: Any, number: int) -> None:
    torch.manual_seed(number)
    model.inner = nn.Linear(3, 3, bias=bool(number % 2))


def change_hooks(model: Any, number: int) -> None:
    if number % 2:
        model.inner._forward_hooks.clear()
    else:
        model.inner.register_forward_hook(lambda module, args, out: out + 1)


def change_gradients(model: Any, number: int) -> None:
    model.inner.weight.requires_grad_(bool(number % 2))


CHANGES = [
    change_global, change_table, change_function, change_attribute, change_mode, change_numbers, change_parameter, change_tensor,
    change_module, change_hooks, change_gradients,
]  # fmt: skip
steps = st.tuples(
    st.sampled_from(CHANGES), st.integers(0, 9), st.sampled_from([(2, 3), (3,), (4, 3)]), st.booleans(), st.booleans()
)


@settings(max_examples=12, deadline=None)
@given(st.lists(steps, min_size=2, max_size=7), st.booleans())
def test_whatever_changes(program: list[Any], as_module: bool) -> None:
    torch.manual_seed(0)
    globals().update(FACTOR=1.5, USED=power, WEIGHTS=torch.tensor([1.0, -2.0, 0.5]))
    TABLE["shift"] = 0.25
    model = Layer()
    compiled = torch.compile(model) if as_module else torch.compile(lambda *args, **kwargs: model(*args, **kwargs))
    for number, (change, how, shape, with_bias, twice) in enumerate(program):
        for turn in range(2):
            x = torch.randn(shape, requires_grad=bool(number % 2))
            args = (x, torch.ones(3)) if with_bias else (x,)
            torch.manual_seed(turn)
            expected = model(*args, twice=twice)
            torch.manual_seed(turn)
            made = compiled(*args, twice=twice)
            torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-5)
            assert made.requires_grad == expected.requires_grad
            if expected.requires_grad:
                wanted = [one for one in (x, *model.parameters()) if one.requires_grad]
                sides = [torch.autograd.grad(one.sum(), wanted, allow_unused=True) for one in (made, expected)]
                torch.testing.assert_close(sides[0], sides[1], rtol=1e-4, atol=1e-4)
        change(model, how)
