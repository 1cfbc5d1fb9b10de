"""What our messages add to torch's: the user's own lines that caused the error."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import retrograd as torch


def line() -> int:
    return sys._getframe(1).f_lineno


def place(number: int) -> str:
    return f'File "{__file__}", line {number}, in '


def leaf() -> Any:
    return torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)


def message(call: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


def test_second_backward_names_the_first():
    y = leaf().exp().sum()
    first = line() + 1
    y.backward()
    text = message(y.backward)
    assert "Trying to backward through the graph a second time" in text
    assert place(first) in text


def test_second_backward_after_autograd_grad():
    x = leaf()
    y = x.exp().sum()
    first = line() + 1
    torch.autograd.grad(y, x)
    assert place(first) in message(y.backward)


def test_second_backward_after_autograd_backward():
    y = leaf().exp().sum()
    first = line() + 1
    torch.autograd.backward(y)
    assert place(first) in message(y.backward)


def test_second_backward_of_custom_function():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Twice.apply(leaf()).sum()
    first = line() + 1
    y.backward()
    assert place(first) in message(y.backward)


def test_freed_saved_value_names_the_backward():
    y = leaf().exp()
    first = line() + 1
    y.sum().backward()
    assert place(first) in message(lambda: y.grad_fn._saved_result)


def _both(save: Any, write: Any) -> tuple[str, int, int]:
    y = leaf() * 1
    z = save(y)
    write(y)
    text = message(z.sum().backward)
    assert "modified by an inplace operation" in text
    return text, save.__code__.co_firstlineno, write.__code__.co_firstlineno


SAVING = {
    "y * y": lambda y: y * y,
    "sin": lambda y: y.sin(),
    "torch.sin": lambda y: torch.sin(y),
    "y / y": lambda y: y / y,
    "y ** 2": lambda y: y**2,
    "y ** 3.0": lambda y: y.pow(3.0),
    "prod": lambda y: y.prod(),
    "norm": lambda y: y.norm(),
    "matmul": lambda y: y @ y,
    "atan2": lambda y: y.atan2(y),
    "cos": lambda y: torch.cos(y),
    "maximum": lambda y: y.maximum(torch.ones_like(y)),
    "log": lambda y: y.log(),
}
WRITING = {
    "add_": lambda y: y.add_(1),
    "mul_": lambda y: y.mul_(2),
    "exp_": lambda y: y.exp_(),
    "zero_": lambda y: y.zero_(),
    "fill_": lambda y: y.fill_(3.0),
    "copy_": lambda y: y.copy_(torch.zeros(3, dtype=torch.float64)),
    "item": lambda y: y.__setitem__(0, 5.0),
    "view": lambda y: y[1:].mul_(2),
    "view of view": lambda y: y.view(3, 1)[1].zero_(),
    "detached": lambda y: y.detach().add_(1),
    "clamp_": lambda y: y.clamp_(0, 1),
    "masked_fill_": lambda y: y.masked_fill_(y > 0, 1.0),
    "iadd": lambda y: y.__iadd__(1),
    "sqrt_": lambda y: y.sqrt_(),
    "uniform_": lambda y: y.detach().uniform_(),
    "scatter_": lambda y: y.scatter_(0, torch.tensor([0]), 5.0),
    "index_put_": lambda y: y.index_put_((torch.tensor([0]),), torch.tensor(5.0, dtype=torch.float64)),
    "increment_version": lambda y: torch.autograd.graph.increment_version(y),
}


@pytest.mark.parametrize("name", SAVING)
def test_overwritten_value_names_the_line_that_saved(name):
    text, saved, _ = _both(SAVING[name], WRITING["zero_"])
    assert place(saved) in text.split("and overwritten by")[0]


@pytest.mark.parametrize("name", WRITING)
def test_overwritten_value_names_the_line_that_wrote(name):
    text, _, written = _both(SAVING["y * y"], WRITING[name])
    assert place(written) in text.split("and overwritten by")[1]


def test_overwritten_output_names_both_lines():
    saved = line() + 1
    y = leaf().exp()
    z = y.sum()
    written = line() + 1
    y.mul_(2)
    text = message(z.backward)
    assert place(saved) in text
    assert place(written) in text


def test_overwritten_under_no_grad_names_both_lines():
    x = leaf()
    saved = line() + 1
    y = x * x
    with torch.no_grad():
        written = line() + 1
        x.add_(1)
    text = message(y.sum().backward)
    assert place(saved) in text
    assert place(written) in text


def test_overwritten_constant_names_both_lines():
    c = torch.ones(3, dtype=torch.float64)
    saved = line() + 1
    y = leaf() * c
    written = line() + 1
    c.zero_()
    text = message(y.sum().backward)
    assert place(saved) in text
    assert place(written) in text


def test_overwritten_value_of_custom_function_names_both_lines():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = leaf() * 1
    saved = line() + 1
    z = Twice.apply(y)
    written = line() + 1
    y.add_(1)
    text = message(z.sum().backward)
    assert place(saved) in text
    assert place(written) in text


def test_last_of_several_writes_is_named():
    y = leaf() * 1
    z = y * y
    y.add_(1)
    last = line() + 1
    y.mul_(2)
    assert place(last) in message(z.sum().backward)


def test_first_sentence_is_torchs():
    text, _, _ = _both(SAVING["y * y"], WRITING["add_"])
    assert text.startswith(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.DoubleTensor [3]], which is output 0 of Add, is at version 1; expected version 0 instead. "
        "Hint: "
    )


def test_message_says_what_to_do():
    text, _, _ = _both(SAVING["y * y"], WRITING["add_"])
    assert "clone()" in text
