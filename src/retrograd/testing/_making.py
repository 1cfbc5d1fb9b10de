"""Tensors of random values for tests."""

from __future__ import annotations

import math
from typing import Any

from .. import _dtypes
from .._warnings import warn
from ..tensor._functions.complex_views import view_as_real
from ..tensor._functions.creation import empty
from ..tensor._functions.elementwise import where
from ..tensor._functions.random_tensors import randint
from ..tensor._functions.shape import sizes_from


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Make a tensor of random values in [low, high), of any dtype."""
    sizes = sizes_from(shape)
    if requires_grad and dtype.kind < _dtypes.FLOAT_KIND:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    spread = noncontiguous and math.prod(sizes) > 1
    made = (*sizes[:-1], 2 * sizes[-1]) if spread else sizes
    bounds = _bounds(dtype, low, high)
    result = randint(*bounds, made, dtype=dtype, device=device) if dtype.kind < _dtypes.FLOAT_KIND else None
    if result is None:
        result = empty(made, dtype=dtype, device=device)
        _fill_uniform(view_as_real(result) if dtype.is_complex else result, *bounds)
    if spread:
        result = result[..., 1::2]
    if exclude_zero:
        tiny = 1 if dtype.kind < _dtypes.FLOAT_KIND else _dtypes.finfo(dtype.to_real()).tiny
        result = _without_zeros(result, True if dtype.kind == _dtypes.BOOL_KIND else tiny, spread)
    return result.requires_grad_() if requires_grad else result


def _limits(dtype: Any) -> tuple[float, float, float, float]:
    """Return the default bounds of a dtype, and the bounds of what it can hold, the upper ones not included."""
    if dtype.kind == _dtypes.BOOL_KIND:
        return 0, 2, 0, 2
    if dtype.kind == _dtypes.INT_KIND:
        held = _dtypes.iinfo(dtype)
        top = held.max + (held.max < 2**63 - 1)  # randint's bound is an int64 itself
        return (-9 if dtype.is_signed else 0), 10, held.min, top
    floats = _dtypes.finfo(dtype.to_real())
    return -9, 9, floats.min, floats.max


def _bounds(dtype: Any, low: float | None, high: float | None) -> tuple[Any, Any]:
    """Fill in the bounds, cut them to what the dtype holds, and round those of integers up."""
    default_low, default_high, lowest, highest = _limits(dtype)
    a, b = default_low if low is None else low, default_high if high is None else high
    if any(isinstance(one, float) and math.isnan(one) for one in (a, b)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={a} and high={b}")
    if a == b and dtype.kind >= _dtypes.FLOAT_KIND:
        warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif a >= b:
        raise ValueError(f"`low` must be less than `high`, but got {a} >= {b}")
    elif b < lowest or a >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{a}, {b}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    a, b = max(a, lowest), min(b, highest)
    return (math.ceil(a), math.ceil(b)) if dtype.kind < _dtypes.FLOAT_KIND else (a, b)


def _fill_uniform(tensor: Any, low: float, high: float) -> None:
    """Fill with uniform numbers, by halves where the interval is longer than the largest number."""
    longest = _dtypes.finfo(tensor.dtype).max
    if high - low > longest:
        tensor.uniform_(low / 2, high / 2).mul_(2)
    else:
        tensor.uniform_(low, high)


def _without_zeros(tensor: Any, instead: Any, spread: bool) -> Any:
    """Replace zeros; in the memory of a strided tensor, so that it stays strided."""
    if not spread:
        return where(tensor == 0, instead, tensor).to(tensor.dtype)
    tensor[tensor == 0] = instead
    return tensor
