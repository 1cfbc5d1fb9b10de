"""torch.backends.cuda: switches that programs set. Here they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from .._absent import finder
from ..cuda import is_available as is_built

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Accept the switches for a block: attention has one form here."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)


def enable_flash_sdp(enabled: bool) -> None:
    """Accept the switch: attention has one form here."""
    _attention["flash"] = enabled


def flash_sdp_enabled() -> bool:
    """Return the switch."""
    return _attention["flash"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Accept the switch: attention has one form here."""
    _attention["mem_efficient"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Return the switch."""
    return _attention["mem_efficient"]


def enable_math_sdp(enabled: bool) -> None:
    """Accept the switch: attention has one form here."""
    _attention["math"] = enabled


def math_sdp_enabled() -> bool:
    """Return the switch."""
    return _attention["math"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Accept the switch: attention has one form here."""
    _attention["cudnn"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Return the switch."""
    return _attention["cudnn"]


__getattr__ = finder("torch.backends.cuda")

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
]
