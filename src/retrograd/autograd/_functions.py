"""torch.autograd._functions: two old Functions that programs may still call."""

from __future__ import annotations

import math
from typing import Any

from .._warnings import warn
from .function import Function


class Type(Function):
    """Change the type of a tensor."""

    @staticmethod
    def forward(ctx: Any, i: Any, dest_type: Any) -> Any:
        warn(
            "`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
            "`torch.tensor.to(dtype=dtype)` instead.",
            FutureWarning,
        )
        ctx.dtype = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.to(ctx.dtype), None


class Resize(Function):
    """Change the shape of a tensor."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        ctx.input_sizes = tensor.size()
        if tensor.numel() != math.prod(sizes):
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the given "
                f"tensor has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} elements). autograd's resize "
                "can only change the shape of a given tensor, while preserving the number of elements. "
            )
        return tensor.clone().reshape(sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.contiguous().view(ctx.input_sizes), None


__all__ = ["Resize", "Type"]
