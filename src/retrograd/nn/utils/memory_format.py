"""The order of the axes of convolutions' weights in memory."""

from __future__ import annotations

from typing import Any

from ..modules import conv


def _convert(module: Any, memory_format: Any, rank: int) -> Any:
    kinds = (getattr(conv, f"Conv{rank}d"), getattr(conv, f"ConvTranspose{rank}d"))
    for one in module.modules():
        if isinstance(one, kinds):
            one.weight.data = one.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Bring the weights of all 2-d convolutions below a module into a memory format."""
    return _convert(module, memory_format, 2)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Bring the weights of all 3-d convolutions below a module into a memory format."""
    return _convert(module, memory_format, 3)


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
