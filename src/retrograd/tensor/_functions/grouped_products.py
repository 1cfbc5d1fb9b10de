"""Products of several matrices at once, of rows or columns that belong to groups, and of small integers."""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from ...overrides import declared, overridable
from .joining import cat, stack
from .matrix_checks import scalar_name


@overridable
def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Multiply each group of one side by its matrix of the other; `offs` says where groups end on a side of two dimensions.

    Two sides of three dimensions are batches; with two of two, groups lie along what is summed over.
    """
    if mat_a.dim() not in (2, 3):
        raise RuntimeError("mat_a has to be 2 or 3d")
    if mat_b.dim() not in (2, 3):
        raise RuntimeError("mat_b has to be 2 or 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    has_flat_side = mat_a.dim() == 2 or mat_b.dim() == 2
    if has_flat_side != (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    made = mat_a @ mat_b if offs is None else _by_groups(mat_a, mat_b, offs)
    return made if out_dtype is None else made.to(out_dtype)


def _by_groups(mat_a: Any, mat_b: Any, offs: Any) -> Any:
    ends = offs.tolist()
    runs = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return stack([mat_a[:, first:last] @ mat_b[first:last] for first, last in runs])
    if mat_a.dim() == 2:
        rows = [mat_a[first:last] @ one for (first, last), one in zip(runs, mat_b, strict=True)]
        return _filled(cat(rows), mat_a.shape[0], 0)
    columns = [one @ mat_b[:, first:last] for (first, last), one in zip(runs, mat_a, strict=True)]
    return _filled(cat(columns, 1), mat_b.shape[1], 1)


def _filled(made: Any, length: int, dim: int) -> Any:
    """Add zeros for what belongs to no group."""
    missing = length - made.shape[dim]
    if not missing:
        return made
    shape = list(made.shape)
    shape[dim] = missing
    return cat([made, made.new_zeros(shape)], dim)


@overridable(forms="function")
def _int_mm(input: Any, mat2: Any) -> Any:
    """Multiply matrices of bytes, summing in 32 bits."""
    for name, one in (("self", input), ("mat2", mat2)):
        if one.dtype not in (_dtypes.int8, _dtypes.uint8):
            kind = scalar_name(one).lower()
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be int8 or uint8 but got {kind}")
    return input.to(_dtypes.int32) @ mat2.to(_dtypes.int32)


_grouped_mm = declared(grouped_mm, forms="function")
