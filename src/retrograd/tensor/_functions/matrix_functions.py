"""Powers and exponentials of matrices, and matrices of powers."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ..._core.numpy_namespace import is_half
from ..._ops import matrix_exponential
from ...overrides import overridable, takes_out
from .. import _base
from .._recording.record import record
from .cumulative import cumprod
from .joining import cat
from .matrix_checks import need_float, need_square, scalar_name
from .matrix_products import product
from .ranges import eye
from .shape import diagonal, unsqueeze
from .solving import checked_inverse


@takes_out(lowered="cpu cuda")
def linalg_matrix_power(input: Any, n: int) -> Any:
    """Return a whole power of square matrices.

    Args:
        input: (..., n, n)
        n: the exponent; negative ones take the inverse

    Example:
        >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    need_square(input, "linalg.matrix_power")
    if n == 0:
        return input.clone().copy_(eye(input._array.shape[-1], dtype=_base.dtype_of(input), device=input.device))
    if n == 1:
        return input.clone()
    base = checked_inverse(input, "linalg.inv") if n < 0 else input
    left, result = abs(n), None
    while True:
        if left % 2:
            result = base if result is None else product(result, base)
        left //= 2
        if not left:
            return result
        base = product(base, base)


@takes_out(lowered="cpu cuda")
def matrix_power(input: Any, n: int) -> Any:
    """Multiply matrices with themselves; a negative power is one of the inverse."""
    return linalg_matrix_power(input, n)


@overridable
def matrix_exp(input: Any) -> Any:
    """Return the exponential of square matrices: the sum of their powers A**k / k!.

    Args:
        input: (..., n, n)

    Example:
        >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    need_float(input, "linalg.matrix_exp")
    need_square(input, "linalg.matrix_exp")
    return record(matrix_exponential.matrix_exp, (input,), {}, "LinalgMatrixExpBackward0")


@overridable(forms="")
def vander(x: Any, N: int | None = None) -> Any:  # noqa: N803 - torch's name
    """Make matrices of powers: x ** 0, x ** 1, ... up to N of them."""
    if x._array.dtype.kind == "b" or is_half(x._array.dtype):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {scalar_name(x)}"
        )
    x = x if x._array.ndim else unsqueeze(x, 0)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    column = unsqueeze(x.to(_dtypes.int64) if x._array.dtype.kind in "iu" else x, -1)
    powers = cumprod(column.expand(*x._array.shape, count - 1), -1)
    return cat([column.new_ones(column.shape), powers], -1)


@overridable
def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803 - torch's name
    """View the diagonals of matrices."""
    return diagonal(A, offset, dim1, dim2)
