"""Pooling functions that the package has under a name of nn.functional, but with other results; and one of `ops.aten`."""

from __future__ import annotations

from typing import Any

from ..._ops import pooling as p
from ...overrides import overridable, overridable_as
from ...tensor._functions.creation import zeros_like
from ...tensor._recording.record import record
from . import _pooling as functional


@overridable
def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """Take the largest elements of parts of the last axis, as many as wanted, and where they are."""
    return functional.adaptive_max_pool1d_with_indices(input, output_size)


def _always(name: str, raised: str = "") -> Any:
    """Make a pooling that is not asked for indices: it always returns them, or never."""
    of_nn = getattr(functional, name)

    def pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        return of_nn(input, kernel_size, stride, padding, dilation, ceil_mode)

    doc = of_nn.__doc__.partition("\n")[0].replace("; with `return_indices`, also where it is", "")
    return overridable_as(name, pool, doc, raised=raised)


max_pool1d, max_pool1d_with_indices = _always("max_pool1d"), _always("max_pool1d_with_indices")
max_pool2d, max_pool3d = _always("max_pool2d"), _always("max_pool3d", raised="cpu")


@overridable(forms="")
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
