"""Small functions and values of torch that are private, or kept for old programs, and that libraries import."""

from __future__ import annotations

import threading
from enum import IntEnum
from typing import Any

from retrograd._device_modules import get_device_module
from retrograd._warnings import warn
from retrograd.autograd.grad_mode import no_grad
from retrograd.nn.functional._attention import canonical_mask
from retrograd.overrides import has_torch_function
from retrograd.tensor import Tensor, functions

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def has_torch_function_unary(value: Any) -> bool:
    """Tell whether a value takes calls over."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """Tell whether any of some values takes calls over."""
    return has_torch_function(values)


def _shape_as_tensor(input: Any) -> Any:
    """Return the sizes of a tensor as a tensor."""
    return functions()["tensor"](list(input.shape))


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """Return the gradient of softmax's input, by its output."""
    made = grad_output * output
    return (made - output * made.sum(dim, keepdim=True)).to(input_dtype)


def _get_device_module(device_type: str) -> Any:
    """Return the module of a kind of device."""
    return get_device_module(device_type)


def _none_or_dtype(input: Any) -> Any:
    """Return the dtype of a tensor, or None for None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Any:
    """Return a mask of attention as numbers that are added."""

    class _Other:
        dtype = other_type

    other = None if other_type is None else _Other()
    return canonical_mask(mask, mask_name, other, other_name, target_type, compare=check_other)


def _no_grad_uniform_(tensor: Any, a: float, b: float, generator: Any = None) -> Any:
    """Fill a tensor with random numbers, outside the graph."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _set_thread_name(name: str) -> None:
    """Name the thread."""
    threading.current_thread().name = name


def set_vital(vital: str, attr: str, value: str) -> None:
    """Do nothing: nobody collects such notes."""
    warn("'set_vital' is deprecated, please do not call")


class qscheme:  # noqa: N801 - torch's name
    """How quantized numbers would be read: names, for tables that mention them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("per_tensor_symmetric"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class DeviceType(IntEnum):
    """Kinds of devices, as the profiler numbers them."""

    CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA, Vulkan, Metal, XPU, MPS, MTIA = range(15)
    Meta, HPU, VE, Lazy, IPU, PrivateUse1 = 14 + 1, 16, 17, 18, 19, 20


def _is_checkpoint_valid() -> bool:
    """Tell whether a checkpoint may run backward: always, `torch.utils.checkpoint` takes every way."""
    return True


def _disable_profiler() -> list[Any]:
    """End a profile of torch's older kind: there is none."""
    return []


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Tell whether Metal runs on a version of macOS: it is not used here."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Tell whether Metal runs on macOS 13 or newer: it is not used here."""
    return False
