"""Complex numbers seen as pairs of real ones, and back: views on the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtypes import float16, float32, float64
from ..._ops import complex_views as c
from ..._ops import shape as s
from ...overrides import overridable
from .. import _base
from .._aliasing.views import view_op


@overridable
def view_as_real(input: Any) -> Any:
    """View complex numbers as pairs of real ones, in a last dimension of size 2.

    Args:
        input: a tensor of complex numbers

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])
    """
    if not _base.dtype_of(input).is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if input.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as "
            "real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    return view_op(input, s.view_as_real, {}, "ViewAsRealBackward0")


@overridable(raised="cpu")
def view_as_complex(input: Any) -> Any:
    """View pairs of real numbers, a last dimension of size 2, as complex ones.

    Args:
        input: a tensor of floats (..., 2)

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
        tensor([1.+2.j])
    """
    dtype = _base.dtype_of(input)
    if dtype not in (float16, float32, float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{dtype._scalar_name}"
        )
    array = input._array
    if not array.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if not (isinstance(array, np.ndarray) and array.base is None and array.flags.c_contiguous):
        steps = input.stride()
        if steps[-1] != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(step % 2 for step in steps[:-1]):
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
        if input.storage_offset() % 2:
            raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return view_op(input, c.view_as_complex, {}, "ViewAsComplexBackward0")
