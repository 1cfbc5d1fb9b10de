"""autocast: products in a smaller dtype, losses in float32. Read where an operation leaves the hot path, because a mode is set."""

from __future__ import annotations

from typing import Any

from .. import _dtypes
from .._modes import NO_GRAD, PLAIN, read_mode
from . import _base

HALVES = (_dtypes.dtype_named("bfloat16"), _dtypes.dtype_named("float16"))
SINGLE = _dtypes.dtype_named("float32")


def lowered(*tensors: Any) -> tuple[Any, ...]:
    """Bring the floats that meet in a product to the dtype of autocast, if that is on."""
    mode = read_mode()
    if mode is PLAIN or mode is NO_GRAD or mode is None or mode.autocast is None:
        return tensors
    device, dtype = mode.autocast
    if any(isinstance(t, _base.Tensor) and t.dtype is _dtypes.dtype_named("float64") for t in tensors):
        return tensors  # torch casts float32 and halves only
    return tuple(_cast(t, dtype, (SINGLE, *HALVES), device) for t in tensors)


def raised(*tensors: Any) -> tuple[Any, ...]:
    """Bring halves that meet in a loss to float32, if autocast is on."""
    mode = read_mode()
    if mode is PLAIN or mode is NO_GRAD or mode is None or mode.autocast is None:
        return tensors
    return tuple(_cast(t, SINGLE, HALVES, mode.autocast[0]) for t in tensors)


def _cast(value: Any, dtype: Any, of: tuple[Any, ...], device: str) -> Any:
    fits = isinstance(value, _base.Tensor) and value.dtype in of and value.device.type == device
    return value.to(dtype) if fits else value
