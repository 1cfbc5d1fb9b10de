"""Functions with gradients of their own, which modules call."""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function, once_differentiable
from ...tensor._functions.rearrange import constant_pad_nd


def _over_channels(x: Any, before: int, after: int) -> Any:
    """Sum each channel with so many before and after it."""
    return constant_pad_nd(x, [0, 0, 0, 0, before, after]).unfold(1, before + after + 1, 1).sum(-1)


class CrossMapLRN2d(Function):
    """What the module of this name computes, and the gradient that torch takes for its own.

    The sums move from channel to channel, and the square of the first never leaves them; the gradient's window does not lie
    around its channel but before it.
    """

    @staticmethod
    def forward(ctx: Any, input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
        square = input * input
        reach = (size - 1) // 2
        total = _over_channels(square, reach, reach)
        if input.size(1) > reach + 1:
            total[:, reach + 1 :] += square[:, :1]
        scale = total * (alpha / size) + k
        output = input * scale.pow(-beta)
        ctx.save_for_backward(input, output, scale)
        ctx.settings = size, alpha, beta
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        input, output, scale = ctx.saved_tensors
        size, alpha, beta = ctx.settings
        before = int(size - (size - 1) / 2)
        shared = _over_channels(g * output / scale, before, size - 1 - before)
        return g * scale.pow(-beta) - input * shared * (2 * alpha * beta / size), None, None, None, None
