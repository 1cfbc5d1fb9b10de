"""torch.nn.attention: which kernels scaled_dot_product_attention may use, and attention with scores of one's own.

There is one kernel here, so a choice among torch's changes nothing; where torch would find none, neither do we.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..._absent import finder
from ..._modes import setting
from ..functional import _attention as _chosen

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Torch's kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


def sdpa_kernel(backends: Any, set_priority: bool = False) -> Any:
    """Allow some of torch's kernels only, inside a block."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = [backends] if isinstance(backends, SDPBackend) else backends
    return setting(_chosen.allowed, frozenset(one.name for one in wanted))


__getattr__ = finder("torch.nn.attention")

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]
