"""What our messages say after torch's sentence: which function is wrong, where it is, and what helps."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

import retrograd as torch


def line() -> int:
    return sys._getframe(1).f_lineno


def place(number: int, name: str) -> str:
    return f'  File "{__file__}", line {number}, in {name}\n'


def leaf() -> Any:
    return torch.ones(2, requires_grad=True)


def sentence_and_hint(call: Any, kind: type[Exception] = RuntimeError) -> tuple[str, str]:
    with pytest.raises(kind) as caught:
        call()
    sentence, _, hint = str(caught.value).partition("\nHint: ")
    return sentence, hint


RETURNED = {
    "Function AddBackward returned an invalid gradient at index 1 - got [3] but expected shape compatible with [2]": (
        lambda g: (g, torch.ones(3))
    ),
    "function AddBackward returned an incorrect number of gradients (expected 2, got 1)": lambda g: g,
    "expected Variable or None (got int)": lambda g: (g, 3),
}


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("sentence", RETURNED)
def test_a_wrong_gradient_names_apply_and_backward(sentence: str, decorated: bool) -> None:
    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        if decorated:

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, g): return RETURNED[sentence](g)  # fmt: skip
        else:

            @staticmethod
            def backward(ctx, g): return RETURNED[sentence](g)  # fmt: skip

    applied = line() + 1
    y = Add.apply(leaf(), leaf())
    found, hint = sentence_and_hint(y.sum().backward)
    assert found == sentence
    assert "one gradient for each argument of apply" in hint
    assert (
        place(applied, "test_a_wrong_gradient_names_apply_and_backward") + "    y = Add.apply(leaf(), leaf())" in hint
    )
    assert "    def backward(ctx, g): return RETURNED[sentence](g)" in hint


def test_an_error_inside_backward_is_left_alone() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("mine")

    assert sentence_and_hint(Fails.apply(leaf()).sum().backward) == ("mine", "")


class WidensCalled:
    __name__ = "widens"

    def __call__(self, grad):
        return torch.ones(5)


def widens(extra: Any, grad: Any) -> Any:
    return torch.ones(5)


@pytest.mark.parametrize(
    ("hook", "defined"),
    [
        (lambda grad: torch.ones(5), "(lambda grad: torch.ones(5), "),
        (WidensCalled(), "def __call__(self, grad):"),
        (functools.partial(widens, None), "def widens(extra: Any, grad: Any) -> Any:"),
    ],
    ids=["lambda", "object", "partial"],
)
def test_a_hook_that_changes_the_size_is_shown(hook: Any, defined: str) -> None:
    y = leaf() * 2
    y.register_hook(hook)
    sentence, hint = sentence_and_hint(y.sum().backward)
    assert sentence.endswith("has changed the size of value")
    assert "it was given [2] and returned [5]" in hint
    assert f'  File "{__file__}", line ' in hint
    assert defined in hint


def test_a_hook_that_changes_the_type_or_the_number() -> None:
    y = leaf() * 2
    y.register_hook(lambda grad: grad.double())
    sentence, hint = sentence_and_hint(y.sum().backward)
    assert sentence == "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"
    assert "y.register_hook(lambda grad: grad.double())" in hint
    z = leaf() * 2
    z.grad_fn.register_prehook(lambda grads: ())
    sentence, hint = sentence_and_hint(z.sum().backward)
    assert sentence == "hook '<lambda>' has returned an incorrect number of values (got 0, but expected 1)"
    assert "z.grad_fn.register_prehook(lambda grads: ())" in hint


def test_a_hook_of_the_library_is_not_shown() -> None:
    y = leaf() * 2
    y.register_hook(torch.sum)
    assert "File" not in sentence_and_hint(y.sum().backward)[1]


def test_what_requires_no_grad_is_explained() -> None:
    sentence, hint = sentence_and_hint(torch.ones(2).sum().backward)
    assert sentence == "element 0 of tensors does not require grad and does not have a grad_fn"
    assert "requires grad" in hint
    h = (leaf() * 2).detach()
    assert "h = (leaf() * 2).detach()" in sentence_and_hint(lambda: h.sum().backward())[1]
    with torch.no_grad():
        assert sentence_and_hint(lambda: leaf().sum().backward())[1].startswith("gradients are switched off here; ")


def test_what_was_not_used_is_explained() -> None:
    sentence, hint = sentence_and_hint(lambda: torch.autograd.grad((leaf() * 2).sum(), leaf()))
    assert sentence == (
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior."
    )
    assert hint.startswith("No gradient flows from output to input: output does not depend on it")
    w = leaf()
    h = (w * 2).detach()
    _, hint = sentence_and_hint(lambda: torch.autograd.grad((h * leaf()).sum(), w))
    assert "h = (w * 2).detach()" in hint
    x = leaf()
    sentence, hint = sentence_and_hint(lambda: torch.autograd.grad((x * 2).sum(), [x, torch.ones(2)]))
    assert sentence == "One of the differentiated Tensors does not require grad"
    assert hint.startswith("it is inputs[1]; call requires_grad_()")


@pytest.mark.parametrize("read", [lambda v: v.item(), float, int, lambda v: v.tolist()])
def test_reading_a_number_under_vmap(read: Any) -> None:
    sentence, hint = sentence_and_hint(lambda: torch.vmap(lambda v: v * read(v))(torch.ones(2)))
    assert sentence.endswith("please try to rewrite what you're doing with other operations.")
    assert "compute with the tensor itself" in hint


def test_a_function_without_setup_context_under_a_transform() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # here
            return x * 2

    sentence, hint = sentence_and_hint(lambda: torch.func.grad(Twice.apply)(torch.ones(())))
    assert sentence.endswith("https://pytorch.org/docs/main/notes/extending.func.html")
    assert "setup_context(ctx, inputs, output)" in hint
    assert "def forward(ctx, x):  # here" in hint
