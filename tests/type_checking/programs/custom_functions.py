"""Functions with a backward of their own."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, gradcheck
from torch.autograd.function import FunctionCtx, once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Scale(Function):
    @staticmethod
    def forward(x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        return x * factor, x + factor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.factor = inputs[1]
        ctx.set_materialize_grads(True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, None]:
        return first * ctx.factor + second, None


def describe(ctx: FunctionCtx) -> str:
    return type(ctx).__name__


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
y: Tensor = Cube.apply(x)
y.sum().backward()
print(y, x.grad)
doubled, shifted = Scale.apply(x, 2.0)
print(torch.autograd.grad((doubled + shifted).sum(), x)[0])
print(gradcheck(Cube.apply, (x,)), describe.__name__)
