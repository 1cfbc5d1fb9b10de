"""torch._C._functions: nodes that torch has for tests of the engine, and the class of leaves' nodes."""

from __future__ import annotations

from typing import Any

from retrograd.autograd.function import Function
from retrograd.autograd.graph import Node
from retrograd.tensor import AccumulateGrad

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class _UndefinedGrad(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        return None


class _Error(Function):
    @staticmethod
    def forward(ctx: Any, words: str, *tensors: Any) -> Any:
        ctx.words = words
        made = tuple([one.view_as(one) for one in tensors])
        return made[0] if len(made) == 1 else made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        raise RuntimeError(ctx.words)


class UndefinedGrad:
    """Passes tensors on; their gradients are undefined."""

    def __call__(self, *tensors: Any) -> Any:
        made = tuple([_UndefinedGrad.apply(one) for one in tensors])
        return made[0] if len(made) == 1 else made


class DelayedError:
    """Passes tensors on; backward raises an error."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors: Any) -> Any:
        return _Error.apply(self.msg, *tensors)


for _kind in (UndefinedGrad, DelayedError):
    Node.register(_kind)
_UndefinedGrad._backward_cls.__name__, _Error._backward_cls.__name__ = "UndefinedGradBackward", "Error"
