"""What libraries ask of the machinery of `torch.func`: whether a tensor stands for a batch."""

from __future__ import annotations

from typing import Any

from retrograd._absent import finder
from retrograd._core.arrays import levels_of
from retrograd._core.levels import BATCH


def is_batchedtensor(tensor: Any) -> bool:
    """Tell whether a tensor is one sample of a batch over which `vmap` runs."""
    return any(level.kind == BATCH for level in levels_of(tensor._array))


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Tell whether a tensor is of the vmap before `torch.func`: there is only one."""
    return False


__getattr__ = finder("torch._C._functorch")
