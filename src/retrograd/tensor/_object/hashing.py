"""A hash of a tensor's values."""

from __future__ import annotations

from typing import Any

from ..._ops.reduce import xor_sum
from ...overrides import takes_out
from .. import _base
from .._functions.reduce import _axes
from .._recording.out_dtypes import needs_dtype_of_result
from .._recording.record import record


@takes_out
@needs_dtype_of_result
def hash_tensor(input: Any, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Any:
    """Hash the values over dimensions; mode 0, the only one, joins their bits by exclusive or."""
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    axes = _axes(dim, input._array.ndim)
    given = () if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if not given and not input._array.size:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for one in given if input._array.ndim else ():
        if input._array.shape[one] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {one} to have non-zero size.")
    if input._array.dtype.kind == "c":
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{_base.dtype_of(input)._scalar_name}'")
    return record(xor_sum, (input,), {"axis": axes, "keepdims": keepdim}, None)
