"""Second derivatives through writes into views, of operations whose rules read their own result."""

from __future__ import annotations

import pytest

import retrograd
from retrograd import float64

VIEWS = {
    "whole": lambda base: base.view(3),
    "part": lambda base: base[1:],
    "step": lambda base: base[::2],
    "of a view": lambda base: base.view(3, 1)[1:].reshape(-1),
}


@pytest.mark.parametrize("shown", ["view", "base"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("operation", ["exp_", "tanh_", "sigmoid_", "sqrt_", "relu_", "reciprocal_"])
def test_a_saved_result_stands_where_the_view_does(operation: str, view: str, shown: str) -> None:
    x = retrograd.tensor([1.0, 0.5, 2.0], dtype=float64, requires_grad=True)

    def run(x: retrograd.Tensor) -> retrograd.Tensor:
        base = x * 1
        part = VIEWS[view](base)
        getattr(part, operation)()
        return (part if shown == "view" else base).pow(3)

    assert retrograd.autograd.gradgradcheck(run, x)


def test_of_a_custom_function_that_writes() -> None:
    class Exp(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp_()
            ctx.mark_dirty(out)
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def run(x: retrograd.Tensor) -> retrograd.Tensor:
        base = x * 1
        Exp.apply(base[1:])
        return base.pow(2)

    x = retrograd.tensor([1.0, 0.5, 2.0], dtype=float64, requires_grad=True)
    assert retrograd.autograd.gradgradcheck(run, x)


def test_negative_numbers_to_complex_powers() -> None:
    exponent = retrograd.tensor([0.3 + 0.4j, -0.7 + 0.2j], dtype=retrograd.complex128, requires_grad=True)
    base = retrograd.tensor([-2.0, -0.5], dtype=float64, requires_grad=True)
    assert retrograd.autograd.gradcheck(retrograd.pow, (base, exponent), check_forward_ad=True)
    assert retrograd.autograd.gradgradcheck(retrograd.pow, (base, exponent))
