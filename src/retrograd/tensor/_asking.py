"""Questions about tensors, answered in Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtypes
from ._record import promoted
from ._tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """Tell whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Tell whether a tensor's dtype is a floating point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Tell whether a tensor's dtype is complex."""
    return input.is_complex()


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


def result_type(tensor1: Any, tensor2: Any) -> _dtypes.dtype:
    """Return the dtype that an operation on two operands gives."""
    arrays = [t._array if isinstance(t, Tensor) else t for t in (tensor1, tensor2)]
    return _dtypes.from_numpy(promoted(arrays)[1])


def real(input: Tensor) -> Any:
    """Return the real part."""
    return input.real


def imag(input: Tensor) -> Any:
    """Return the imaginary part."""
    return input.imag


def equal(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape and values."""
    return tuple(input.shape) == tuple(other.shape) and bool(input.eq(other).all().item())


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tell whether two tensors are equal up to tolerances."""
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype._scalar_name} did not match {other.dtype._scalar_name}")
    return bool(np.allclose(input.detach().numpy(force=True), other.detach().numpy(force=True), rtol, atol, equal_nan))
