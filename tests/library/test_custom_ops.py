"""Operations that programs define by torch.library: their kernels, derivatives and shape rules."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from retrograd import Tensor, library


@pytest.fixture
def sine() -> Any:
    @library.custom_op("tests::sine", mutates_args=())
    def sine(x: Tensor, scale: float = 1.0) -> Tensor:
        return x.sin() * scale

    return sine


def test_is_called_by_its_name_among_the_operations(sine: Any) -> None:
    x = retrograd.tensor([0.5, 1.0])
    expected = (x.sin() * 3.0).tolist()
    assert sine(x, scale=3.0).tolist() == expected
    assert retrograd.ops.tests.sine(x, 3.0).tolist() == expected
    assert retrograd.ops.tests.sine.default(x, 3.0).tolist() == expected
    assert not hasattr(retrograd.ops.tests, "cosine")


def test_without_a_derivative_backward_is_refused(sine: Any) -> None:
    result = sine(retrograd.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"through tests\.sine\.default but no autograd formula was registered"):
        result.sum().backward()


def test_a_derivative_sees_what_was_kept_and_which_inputs_need_it(sine: Any) -> None:
    needed = []

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx: Any, grad: Any) -> Any:
        needed.append(ctx.needs_input_grad)
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.scale, None

    library.register_autograd("tests::sine", backward, setup_context=keep)
    x = retrograd.tensor([0.0], requires_grad=True)
    sine(x, 2.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0]
    assert needed == [(True, False)]


def test_tensors_without_numbers_go_to_the_shape_rule(sine: Any) -> None:
    empty = retrograd.empty(3, device="meta")
    with pytest.raises(RuntimeError, match="no fake impl"):
        sine(empty)
    sine.register_fake(lambda x, scale=1.0: retrograd.empty_like(x))
    assert sine(empty).shape == (3,)


def test_an_operation_that_writes_into_its_input_has_no_derivative() -> None:
    @library.custom_op("tests::increase_", mutates_args={"x"})
    def increase_(x: Tensor) -> None:
        x.add_(1)

    x = retrograd.zeros(2)
    increase_(x)
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="non-functional operator"):
        increase_.register_autograd(lambda ctx, grad: grad)


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(RuntimeError, match="tests::unknown does not exist"):
        library.register_fake("tests::unknown", lambda x: x)
