"""autocast: which public functions compute in a smaller dtype, and which in float32.

A function says so where it is declared: `@overridable(lowered="cpu cuda")`, `raised="cpu"`. `overrides` asks here before it calls a
function, as it asks subclasses and modes; nothing else knows of autocast.
"""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from .. import _base

SINGLE = _dtypes.dtype_named("float32")
HALVES = (_dtypes.dtype_named("bfloat16"), _dtypes.dtype_named("float16"))
FLOATS = (SINGLE, *HALVES)  # torch leaves float64 as it is


def cast_arguments(function: Any, autocast: tuple[str, Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a public function in the dtype that autocast gives it."""
    device, dtype = autocast
    if device in getattr(function, "lowered", "").split():
        of: tuple[Any, ...] = FLOATS
    elif device in getattr(function, "raised", "").split():
        dtype, of = SINGLE, HALVES
    else:
        return args, kwargs

    def cast(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(cast, value))
        fits = isinstance(value, _base.Tensor) and value.dtype in of and value.device.type == device
        return value.to(dtype) if fits else value

    return tuple(map(cast, args)), {key: cast(value) for key, value in kwargs.items()}
