"""Rarely used: filling a diagonal, Python functions on every element, old names."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes
from ..._core.arrays import Batched
from ..._device import memory_format
from ..._warnings import warn
from ...overrides import declared, overridable
from .. import _base
from .._aliasing.entering import refuse_captured, without_tangents
from .._object.layout import address
from .matrix_functions import vander as powers
from .ranges import arange


def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Write a number on the main diagonal; `wrap` begins again below it in a tall matrix."""
    refuse_captured(self, "fill_diagonal_")
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if not self.numel():
        return self
    if len(shape) == 2:
        rows, columns = shape
        self.diagonal().fill_(fill_value)
        if wrap:
            for start in builtins.range(columns + 1, rows, columns + 1):
                self[start:].diagonal().fill_(fill_value)
        return self
    step, offset = sum(self.stride()), self.storage_offset()
    self.as_strided((min(shape),), (step,), offset).fill_(fill_value)
    return self


def _refuse_grad(name: str, *tensors: Any) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _element_by_element(name: str, function: Callable[..., Any], target: Any, others: tuple[Any, ...]) -> Any:
    _refuse_grad(name, target, *others)
    columns = [np.broadcast_to(np.asarray(t._array), target._array.shape) for t in (target, *others)]
    made = np.empty(target._array.shape, target._array.dtype)
    flat = made.reshape(-1)
    for k, values in enumerate(zip(*(c.reshape(-1).tolist() for c in columns), strict=True)):
        flat[k] = function(*values)
    return target.copy_(_base.wrap(made))


def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Replace every element by what a Python function makes of it."""
    return _element_by_element("apply_", callable, self, ())


def map_(self: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Replace every element by what a Python function makes of it and another tensor's."""
    return _element_by_element("map_", callable, self, (tensor,))


def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Replace every element by what a Python function makes of it and two other tensors'."""
    return _element_by_element("map2_", callable, self, (x, y))


@overridable
def detach(input: Any) -> Any:
    """Return a tensor on the same memory, outside the graph."""
    return input.detach()


@overridable(forms="function method")
def get_device(input: Any) -> int:
    """Return the number of a tensor's CUDA device, -1 for the CPU."""
    return input.device.index if input.is_cuda else -1


@declared(seen=False)
def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Any:
    """Count from start to end, including end: torch's old name, which `arange` replaces."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's "
        "range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {float(start)} -> {float(end)}")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    values = arange(count, dtype=_dtypes.float64) * step + start
    return values.to(dtype or _dtypes.get_default_dtype(), **options)


@overridable
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803 - torch's name
    """Make a matrix of powers of a vector, the highest first unless they shall increase."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    made = powers(x, N)
    return made if increasing else made.flip(-1)


def pin_memory(self: Any, device: Any = None) -> Any:
    """Return the tensor: CuPy copies from ordinary memory."""
    return self


def is_set_to(self: Any, tensor: Any) -> bool:
    """Tell whether another tensor has the same memory, shape and strides."""
    arrays = [without_tangents(_base.materialise(one)) for one in (self, tensor)]
    if any(isinstance(array, Batched) for array in arrays):
        raise RuntimeError("Batching rule not implemented for aten::is_set_to. We could not generate a fallback.")
    first, second = map(address, arrays)
    return bool(first == second and self.shape == tensor.shape and self.stride() == tensor.stride())


def dim_order(self: Any, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions in the order of their strides, the largest first."""
    formats = ambiguity_check if isinstance(ambiguity_check, list) else [ambiguity_check]
    if not all(type(one) is bool or isinstance(one, memory_format) for one in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    steps = self.stride()
    return tuple(sorted(builtins.range(self.dim()), key=lambda d: -steps[d]))
