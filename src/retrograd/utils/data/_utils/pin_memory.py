"""torch.utils.data._utils.pin_memory: asks the parts of a batch to pin their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._absent import finder
from .collate import mapping_like, sequence_like


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return a batch after `pin_memory()` of everything in it that has such a method."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return mapping_like(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple):
        parts = [pin_memory(one, device) for one in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, Sequence):
        return sequence_like(data, [pin_memory(one, device) for one in data])
    return data


__getattr__ = finder("torch.utils.data._utils.pin_memory")
