"""Fake quantization: values rounded to a few levels, kept as floats, whose gradient passes where nothing was cut off."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ..._errors import wrap_dim
from ...autograd.function import Function
from ...overrides import overridable
from ...tensor import _base
from ...tensor._functions.creation import as_tensor
from ...tensor._functions.matrix_checks import scalar_name


@overridable
def fake_quantize_per_tensor_affine(input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """Round to multiples of `scale`, as many as there are integers between the bounds."""
    _check(input, quant_min, quant_max)
    if not quant_min <= int(zero_point) <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    step, zero = (as_tensor(one, dtype=_base.dtype_of(input)) for one in (scale, int(zero_point)))
    return _rounded(input, step, zero, quant_min, quant_max)


@overridable
def fake_quantize_per_channel_affine(
    input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    """Round to multiples of a scale that each slice along an axis has of its own."""
    if zero_point.dtype not in (_dtypes.int32, _dtypes.float32, _dtypes.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {scalar_name(zero_point)}")
    if scale.dim() != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if zero_point.dim() != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    at = wrap_dim(axis, input.dim())
    if scale.numel() != input.shape[at]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check(input, quant_min, quant_max)
    if not bool(((zero_point >= quant_min) & (zero_point <= quant_max)).all()):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = [1] * input.dim()
    shape[at] = -1
    step, zero = (one.detach().to(input.dtype).reshape(shape) for one in (scale, zero_point))
    return _rounded(input, step, zero, quant_min, quant_max)


def _check(input: Any, quant_min: int, quant_max: int) -> None:
    if not input.is_floating_point():
        name = "fake_quantize_tensor_cachemask_kernel_type_handling"
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(input)}'")
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _rounded(input: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    class FakeQuantizeAffineCachemask(Function):
        """Round; pass the gradient on where the level was within the bounds."""

        @staticmethod
        def forward(ctx: Any, values: Any) -> Any:
            """Compute the levels."""
            level = (values * scale.reciprocal()).round() + zero_point
            ctx.save_for_backward((level >= low) & (level <= high))
            level = level.nan_to_num(low, None, None).clamp(low, high)  # torch turns NaN into the lowest integer
            return (level - zero_point) * scale

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            """Pass the gradient where nothing was cut off."""
            (inside,) = ctx.saved_tensors
            return grad * inside

    return FakeQuantizeAffineCachemask.apply(input)
