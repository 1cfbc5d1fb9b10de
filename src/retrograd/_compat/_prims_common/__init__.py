"""torch._prims_common: small questions about shapes, strides and dtypes that libraries ask."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import retrograd
from retrograd._core.memory_order import dense_strides
from retrograd._device import device as device_type
from retrograd._dtypes import dtype as dtype_type
from retrograd._errors import wrap_dim
from retrograd._warnings import warn

ShapeType = Any
StrideType = Any
DimsType = int | list[int] | tuple[int, ...]
DimsSequenceType = list[int] | tuple[int, ...]
NumberType = bool | int | float | complex
Number = (bool, int, float, complex)
DeviceLikeType = str | device_type | int
TensorLike = retrograd.Tensor
TensorLikeType = retrograd.Tensor

_NARROW = (retrograd.float16, retrograd.bfloat16)


# ---- dtypes ----
def is_boolean_dtype(dtype: dtype_type) -> bool:
    """Tell whether a dtype is bool."""
    return dtype is retrograd.bool


def is_float_dtype(dtype: dtype_type) -> bool:
    """Tell whether a dtype is of real floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: dtype_type) -> bool:
    """Tell whether a dtype is complex."""
    return dtype.is_complex


def is_integer_dtype(dtype: dtype_type) -> bool:
    """Tell whether a dtype is of integers; bool is none."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


def is_low_precision_dtype(dtype: dtype_type) -> bool:
    """Tell whether a dtype has less precision than float32."""
    return dtype in _NARROW


def get_computation_dtype(dtype: dtype_type) -> dtype_type:
    """Return the dtype that a dtype's values are computed in."""
    return retrograd.float32 if dtype in _NARROW else dtype


def corresponding_real_dtype(dtype: dtype_type) -> dtype_type:
    """Return the dtype of the parts of a complex one."""
    return dtype.to_real()


def corresponding_complex_dtype(dtype: dtype_type) -> dtype_type:
    """Return the complex dtype whose parts have a dtype."""
    return dtype.to_complex()


def dtype_to_type(dtype: dtype_type) -> type:
    """Return Python's type of a dtype's values."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> dtype_type:
    """Return the dtype that Python's numbers of a type get."""
    if typ is bool:
        return retrograd.bool
    if typ is int:
        return retrograd.int64
    if typ is float:
        return retrograd.get_default_dtype()
    if typ is complex:
        return corresponding_complex_dtype(retrograd.get_default_dtype())
    raise ValueError(f"Invalid type {typ}!")


def get_dtype(x: Any) -> dtype_type:
    """Return the dtype of a tensor or a number."""
    return x.dtype if isinstance(x, retrograd.Tensor) else type_to_dtype(type(x))


def dtype_or_default(dtype: dtype_type | None) -> dtype_type:
    """Return a dtype, or the default one for None."""
    return retrograd.get_default_dtype() if dtype is None else dtype


def device_or_default(device: Any) -> Any:
    """Return a device, or the CPU for None."""
    return device_type("cpu") if device is None else device


# ---- dimensions ----
def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Return a dimension counted from the front."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    return wrap_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Return dimensions counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


# ---- memory ----
def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Return the strides of new memory; for matrices in columns if not `row_major`."""
    shape = tuple(operator.index(n) for n in shape)
    strides = dense_strides(shape)
    if row_major or len(shape) < 2:
        return strides
    return (*strides[:-2], 1, max(shape[-2], 1))


def is_contiguous(a: Any) -> bool:
    """Tell whether a tensor's elements lie in memory in their order and without gaps."""
    return a.is_contiguous()  # type: ignore[no-any-return]


is_contiguous_or_false = is_contiguous


def suggest_memory_format(x: Any) -> Any:
    """Return the memory format that a tensor of four or five dimensions lies in."""
    formats = {4: retrograd.channels_last, 5: retrograd.channels_last_3d}
    wanted = formats.get(x.dim())
    if wanted is not None and not x.is_contiguous() and x.is_contiguous(memory_format=wanted):
        return wanted
    return retrograd.contiguous_format


def compute_required_storage_length(shape: Any, strides: Any, storage_offset: int) -> int:
    """Return how many elements a memory needs for a shape with strides."""
    if 0 in shape:
        return 0
    last: int = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return 1 + storage_offset + last


def is_expandable_to(shape: Any, desired: Any) -> bool:
    """Tell whether a shape broadcasts to another."""
    if len(shape) > len(desired):
        return False
    return all(n in (m, 1) for n, m in zip(reversed(shape), reversed(desired), strict=False))


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Tell whether two shapes are equal."""
    return tuple(a) == tuple(b)


def numel(shape: Sequence[int]) -> int:
    """Return how many elements a shape has."""
    return math.prod(shape)


def alert_not_deterministic(caller: str) -> None:
    """Raise or warn if only deterministic algorithms are to be used."""
    if not retrograd.are_deterministic_algorithms_enabled():
        return
    text = (
        f"{caller} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    if retrograd.is_deterministic_algorithms_warn_only_enabled():
        warn(f"{text}, warn_only=True)'.")
        return
    raise RuntimeError(f"{text})'.")
