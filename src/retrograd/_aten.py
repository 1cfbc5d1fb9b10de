"""Operations that only torch's dispatcher names: what methods, indexing and conversions come down to there."""

from __future__ import annotations

import builtins
from typing import Any

__all__ = ["_pin_memory", "_to_copy", "alias", "index", "slice"]


def _to_copy(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """Convert, always to new memory."""
    kept = {} if memory_format is None else {"memory_format": memory_format}
    made = self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True, **kept)
    return made.pin_memory() if pin_memory else made


def _pin_memory(self: Any, device: Any = None) -> Any:
    """Copy to memory that a device reads without the CPU."""
    return self.pin_memory()


def alias(self: Any) -> Any:
    """Return the tensor again, as another object on the same memory."""
    return self.view(self.shape)


def slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Return a part of one dimension."""
    return self[(builtins.slice(None),) * (dim % self.dim()) + (builtins.slice(start, end, step),)]


def index(self: Any, indices: Any) -> Any:
    """Return what tensors of positions or of truth values choose; None leaves a dimension whole."""
    return self[tuple(builtins.slice(None) if one is None else one for one in indices)]
