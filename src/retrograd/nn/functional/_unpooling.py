"""Unpooling: what max pooling took, put back where it was, among zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import pooling as p
from ...overrides import overridable_as
from ...tensor._recording.record import record
from ...tensor._recording.refusals import REFUSED, kernel, refuse

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]

REFUSED.update(
    {
        "max_unpool1d": {"bic": kernel("max_unpool2d")},
        "max_unpool2d": {"bic": kernel("max_unpool2d")},
        "max_unpool3d": {"bic": kernel("max_unpool3d")},
    }
)


def _each(value: Any, ndim: int) -> tuple[int, ...]:
    return (value,) * ndim if isinstance(value, int) else tuple(value)


def _output_size(sizes: tuple[int, ...], kernels: Any, strides: Any, paddings: Any, wanted: Any) -> tuple[int, ...]:
    """Return the sizes to unpool to: those that pooling made these sizes of, or near them."""
    ndim = len(kernels)
    usual = tuple([(sizes[k] - 1) * strides[k] + kernels[k] - 2 * paddings[k] for k in range(ndim)])
    if wanted is None:
        return usual
    if len(wanted) == ndim + 2:
        wanted = wanted[2:]
    if len(wanted) != ndim:
        raise ValueError(
            f"output_size should be a sequence containing {ndim} or {ndim + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for k in range(ndim):
        low, high = usual[k] - strides[k], usual[k] + strides[k]
        if not low < wanted[k] < high:
            raise ValueError(f'invalid output_size "{wanted}" (dim {k} must be between {low} and {high})')
    return tuple(wanted)


def _unpool(ndim: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    kernels = _each(kernel_size, ndim)
    strides = kernels if stride is None else _each(stride, ndim)
    paddings = _each(padding, ndim)
    shape = tuple(input._array.shape)
    rank = len(shape)
    sizes = shape[max(rank - ndim, 0) :]
    counts = _output_size(sizes, kernels, strides, paddings, output_size)
    _check(ndim, input, indices, counts, strides)
    refuse(f"max_unpool{ndim}d", input._array.dtype)
    _check_range(ndim, indices, counts)
    node = f"MaxUnpool{ndim}DBackward0"
    return record(p.put_in_planes, (input, indices), {"sizes": counts, "repeats": False}, node)


def _check(ndim: int, input: Any, indices: Any, counts: tuple[int, ...], strides: tuple[int, ...]) -> None:
    shape, given = tuple(input._array.shape), tuple(indices._array.shape)
    if ndim == 1:  # torch unpools over two axes
        shape, given = (*shape, 1), (*given, 1)
    dims, rank = max(ndim, 2), len(shape)
    if indices._array.dtype != np.int64:
        kind = f" but got: {indices.dtype._scalar_name}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{kind}")
    if not dims + 1 <= rank <= dims + 2:
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {rank} "
            "dimensions."
        )
    if shape != given:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({_errors.sizes(shape)}) but got indices tensor with shape: {_errors.sizes(given)}"
        )
    if ndim == 3 and min(strides) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {_errors.sizes(strides)}")
    for axis in range(1, rank):
        if shape[axis] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got {_errors.sizes(shape)} with dimension {axis} being empty."
            )


def _check_range(ndim: int, indices: Any, counts: tuple[int, ...]) -> None:
    numbers = raw_leaf(indices._array).reshape(-1)
    if is_meta(numbers):
        return
    plane = math.prod(counts)
    outside = (numbers < 0) | (numbers >= plane)
    if bool(outside.any()):
        wrong = numbers[outside]
        volumes = "x".join([str(n) for n in (*counts, *(1,) * (ndim == 1))])
        raise RuntimeError(f"Found an invalid max index: {int(wrong[-1])} (output volumes are of size {volumes})")


def _unpool_of_rank(ndim: int) -> Any:
    def unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        return _unpool(ndim, input, indices, kernel_size, stride, padding, output_size)

    doc = f"Put what `max_pool{ndim}d` took back where it was."
    return overridable_as(f"max_unpool{ndim}d", unpool, doc, raised="cpu" if ndim > 1 else "")


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool_of_rank, (1, 2, 3))
