"""What the losses require of their arguments, in torch's words."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ..._errors import broadcast_error
from ..._modes import current_mode
from ..._warnings import warn
from ...tensor._functions.matrix_checks import scalar_name
from .._reduction import MEAN, NONE


def no_kernel(kernel: str, tensor: Any) -> NotImplementedError:
    """Build torch's error of a kernel that has no version for a tensor's dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(tensor)}'")


def need_real(kernel: str, tensor: Any, *, half: bool = True) -> None:
    """Require floating-point numbers; `half` says whether half precision will do."""
    dtype = tensor._array.dtype
    if dtype.kind not in "fV" or (not half and dtype.itemsize < 4):
        raise no_kernel(kernel, tensor)


def need_same_dtype(tensor: Any, other: Any) -> None:
    """Require weights in the dtype of the input."""
    if other is not None and other._array.dtype != tensor._array.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(tensor)} but found {scalar_name(other)}")


def need_constant(function: str, argument: str, tensor: Any) -> None:
    """Refuse a tensor that requires grad where torch has no derivative."""
    if tensor is not None and tensor._edge is not None and current_mode().tracks:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
            "have requires_grad True."
        )


def warn_of_sizes(input: Any, target: Any) -> None:
    """Warn of a target that will be broadcast."""
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )


def need_fit(x: Any, y: Any) -> None:
    """Require shapes that broadcast."""
    for a, b in zip(reversed(x), reversed(y), strict=False):
        if a != b and a != 1 and b != 1:
            raise broadcast_error(tuple(x), tuple(y))


def in_common_dtype(*tensors: Any) -> tuple[Any, ...]:
    """Bring tensors (or None) to torch's common dtype."""
    given = [t for t in tensors if t is not None]
    first = given[0]._array.dtype
    if all(t._array.dtype == first for t in given):
        return tensors
    dims = tuple(t._array.dtype for t in given if t._array.ndim)
    zero_dims = tuple(t._array.dtype for t in given if not t._array.ndim)
    dtype = _dtypes.from_numpy(_dtypes.result_numpy(dims, zero_dims, ()))
    return tuple(t if t is None else t.to(dtype) for t in tensors)


def reduced(values: Any, reduction: int) -> Any:
    """Reduce losses by torch's number; any other number leaves them as they are."""
    if reduction == MEAN:
        return values.mean()
    return values if reduction == NONE or reduction > 2 else values.sum()
