"""Pooling functions that the package has under a name of nn.functional, but with other results; and one of `ops.aten`."""

from __future__ import annotations

from typing import Any

from ..._ops import pooling as p
from ...overrides import overridable
from ...tensor._functions.creation import zeros_like
from ...tensor._recording.record import record
from . import _pooling as functional
from ._adaptive_pooling import adaptive_max_pool1d_with_indices


@overridable
def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """Take the largest elements of parts of the last axis, as many as wanted, and where they are."""
    return adaptive_max_pool1d_with_indices(input, output_size)


@overridable
def max_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Take the largest element of each window of the last axis."""
    return functional.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool1d_with_indices(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Take the largest element of each window of the last axis, and where it is."""
    return functional.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Take the largest element of each window of the last two axes."""
    return functional.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable(raised="cpu")
def max_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Take the largest element of each window of the last three axes."""
    return functional.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool2d_with_indices_backward(
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    """Bring gradients of `max_pool2d` to where its results came from."""
    params = {"sizes": tuple(self._array.shape)[-2:], "repeats": True}
    result = record(p.put_in_planes, (grad_output, indices), params, "MaxPool2DWithIndicesBackwardBackward0")
    if not self.requires_grad:
        return result
    return result + self.masked_fill(zeros_like(self).eq(0), 0)  # its gradient is zero
