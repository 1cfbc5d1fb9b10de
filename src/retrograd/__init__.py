"""retrograd: PyTorch's automatic differentiation in Python, on NumPy and CuPy."""

from __future__ import annotations

import importlib
from typing import Any

from . import _dtypes, _ops, autograd
from ._as_torch import as_torch
from ._device import channels_last, contiguous_format, device, get_default_device, preserve_format
from ._device import layout, memory_format, set_default_device, strided
from ._dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._size import Size
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .func import vmap
from .tensor import Parameter, Tensor, functions
from .tensor._printing import set_printoptions

__version__ = "0.1.0"

globals().update(functions())
globals().update({each.name: each for each in _dtypes.ALL_DTYPES})
globals().update(_dtypes.ALIASES)


def is_tensor(obj: Any) -> bool:
    """Tell whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:  # noqa: A002 - torch's name
    """Tell whether a tensor's dtype is a floating point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:  # noqa: A002
    """Tell whether a tensor's dtype is complex."""
    return input.is_complex()


def numel(input: Tensor) -> int:  # noqa: A002
    """Return the number of elements."""
    return input.numel()


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """Return the dtype that an operation on two operands gives."""
    from .tensor._record import promoted

    arrays = [t._array if isinstance(t, Tensor) else t for t in (tensor1, tensor2)]
    return _dtypes.from_numpy(promoted(arrays)[1])


def real(input: Tensor) -> Any:  # noqa: A002
    """Return the real part."""
    return input.real


def imag(input: Tensor) -> Any:  # noqa: A002
    """Return the imaginary part."""
    return input.imag


def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
    """Tell whether two tensors have the same shape and values."""
    return tuple(input.shape) == tuple(other.shape) and bool((input == other).all().item())


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:  # noqa: A002
    """Tell whether two tensors are equal up to tolerances."""
    import numpy as np

    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype._scalar_name} did not match {other.dtype._scalar_name}")
    return bool(np.allclose(input.detach().numpy(force=True), other.detach().numpy(force=True), rtol, atol, equal_nan))


# Submodules that most programs do not use are loaded when they are asked for.
_LAZY = ("cli", "compile", "cuda", "func", "nn", "optim", "overrides", "testing", "utils")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module 'torch' has no attribute '{name}' (retrograd does not have it)")


__all__ = [
    "Parameter",
    "Size",
    "Tensor",
    "allclose",
    "as_torch",
    "autograd",
    "can_cast",
    "channels_last",
    "contiguous_format",
    "device",
    "dtype",
    "enable_grad",
    "equal",
    "finfo",
    "get_default_device",
    "get_default_dtype",
    "iinfo",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "layout",
    "memory_format",
    "no_grad",
    "preserve_format",
    "promote_types",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "strided",
    "vmap",
]
_ = _ops  # importing it fills the table of primitives
