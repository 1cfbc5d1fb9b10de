"""New memory with strides of the caller's choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _errors
from .._base import dtype_of
from .._functions.casting import device_of
from .._functions.creation import finish, numpy_dtype, options_of, sizes_of, unset


def _memory(name: str, size: Any, stride: Any, dtype: np.dtype[Any]) -> Any:
    sizes, strides = sizes_of(name, (tuple(size),)), tuple(stride)
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(sizes)}) must match dimensionality of strides ({len(strides)})"
        )
    if any(step < 0 for step in strides):
        shown = f"sizes={_errors.sizes(sizes)} and strides={_errors.sizes(strides)}"
        raise RuntimeError(f"Storage size calculation overflowed with {shown}")
    if 0 in sizes:
        return np.zeros(sizes, dtype)
    count = 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    flat = unset(count, dtype)
    return np.lib.stride_tricks.as_strided(flat, sizes, [step * dtype.itemsize for step in strides])


def empty_strided(size: Any, stride: Any, **options: Any) -> Any:
    """Make a tensor with given strides."""
    _, dtype, device, requires_grad = options_of("empty_strided", options, out=False)
    return finish(_memory("empty_strided", size, stride, numpy_dtype(dtype, "empty_strided")), device, requires_grad)


def new_empty_strided(self: Any, size: Any, stride: Any, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
    """Make a tensor of this one's dtype with given strides."""
    dtype = dtype_of(self) if dtype is None else dtype
    return empty_strided(size, stride, dtype=dtype, device=device_of(self) if device is None else device, **rest)


def empty_permuted(size: Any, physical_layout: Sequence[int], **options: Any) -> Any:
    """Make a dense tensor whose dimensions lie in memory in a given order, outermost first."""
    _, dtype, device, requires_grad = options_of("empty_permuted", options, out=False)
    sizes, order = sizes_of("empty_permuted", (tuple(size),)), tuple(physical_layout)
    if len(sizes) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(sizes)} is not equal to len(physical_layout) = {len(order)}"
        )
    for k, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {dim} at index {k}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    dense = unset([sizes[dim] for dim in order], numpy_dtype(dtype, "empty_permuted"))
    return finish(dense.transpose([order.index(k) for k in range(len(sizes))]), device, requires_grad)
