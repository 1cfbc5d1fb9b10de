"""What the functions of linear algebra require of their arguments, in torch's words."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.arrays import is_meta, levels_of, raw_leaf
from ..._core.levels import DUAL
from ..._modes import current_mode
from ..._ops.matrices import batch_element
from .. import _base
from .._recording.operands import not_a_tensor


def scalar_name(tensor: Any) -> str:
    """Return torch's name of a tensor's dtype in messages: Float, Long."""
    return _base.dtype_of(tensor)._scalar_name


def need_tensor(value: Any, function: str, argument: str, position: int = 1) -> None:
    """Refuse what is not a Tensor."""
    if not isinstance(value, _base.Tensor):
        raise TypeError(not_a_tensor(function, position, value, argument))


def need_matrix(tensor: Any, name: str, argument: str = "A") -> None:
    """Require at least two dimensions."""
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def need_square(tensor: Any, name: str, argument: str = "A") -> None:
    """Require square matrices."""
    need_matrix(tensor, name, argument)
    rows, columns = tensor._array.shape[-2:]
    if rows != columns:
        prefix = f"{name}: " if name else ""
        raise RuntimeError(
            f"{prefix}{argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def need_float(tensor: Any, name: str) -> None:
    """Require floating-point or complex numbers."""
    if tensor._array.dtype.kind in "biu":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(tensor)}")


def need_kernel(tensor: Any, kernel: str) -> None:
    """Require a dtype in which LAPACK computes."""
    if tensor._array.dtype.char not in "fdFD":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(tensor)}'")


def need_same_batch(tensor: Any, input: Any, name: str, argument: str) -> None:
    """Require the leading dimensions of the input."""
    lead = tuple(tensor._array.shape[: input._array.ndim - 2])
    if lead != tuple(input._array.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got "
            f"{_errors.sizes(lead)}"
        )


def raise_for(numbers: Any, name: str, error: type[Exception], text: str) -> None:
    """Raise if an algorithm failed for any matrix; `{}` in the text is LAPACK's number for where.

    `numbers` are these numbers, as a Tensor or an array; 0 says that all went well.
    """
    numbers = raw_leaf(numbers._array) if isinstance(numbers, _base.Tensor) else numbers
    if not is_meta(numbers) and (numbers.any() if numbers.ndim else numbers):
        flat = numbers.reshape(-1)
        at = int((flat != 0).argmax())
        raise error(f"{name}: {batch_element(at, numbers.ndim)}{text.replace('{}', str(int(flat[at])))}")


def is_differentiated(tensor: Any) -> bool:
    """Tell whether a derivative, in either mode, will be asked of what is computed with a tensor."""
    if current_mode().tracks and tensor._edge is not None:
        return True
    return any(level.kind == DUAL for level in levels_of(tensor._array))
