"""torch._prims_common.wrappers: conversions that libraries call."""

from __future__ import annotations

from typing import Any

import retrograd

from . import dtype_to_type


def _maybe_convert_to_dtype(a: Any, dtype: Any) -> Any:
    """Bring a tensor, a number or a sequence of them to a dtype; None stays."""
    if isinstance(a, retrograd.Tensor):
        return a if a.dtype is dtype else a.to(dtype)
    if isinstance(a, (bool, int, float, complex)):
        return dtype_to_type(dtype)(a)
    if isinstance(a, (list, tuple)):
        return tuple(_maybe_convert_to_dtype(one, dtype) for one in a)
    if a is None:
        return None
    raise ValueError(f"Received unsupported type {type(a)}. Expected TensorLike, Number, or Sequence.")
