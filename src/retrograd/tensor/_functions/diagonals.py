"""Diagonals and triangles."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._ops import shape as s
from ...overrides import overridable, takes_out
from .._recording.record import record
from .creation import finish
from .shape import diagonal as diagonal_view
from .shape import reshape
from .view_copies import copied


@takes_out(out_dtype="result")
def diag(input: Any, diagonal: int = 0) -> Any:
    """Make a matrix of a diagonal, or copy the diagonal of a matrix."""
    ndim = input._array.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return copied(diagonal_view(input, diagonal))


@takes_out
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Put vectors on the diagonals of new matrices."""
    shape = tuple(input._array.shape)
    rank = len(shape) + 1
    a, b = _errors.wrap_dim(dim1, rank), _errors.wrap_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = shape[-1] + abs(offset)
    sizes = iter(shape[:-1])
    wide = tuple([side if k in (a, b) else next(sizes) for k in range(rank)])
    params = {"shape": wide, "offset": offset, "axis1": a, "axis2": b}
    shown = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return record(s.put_diagonal, (input,), params, "DiagEmbedBackward0", shown)


@overridable
def diagflat(input: Any, offset: int = 0) -> Any:
    """Put all elements on the diagonal of a new matrix."""
    return diag_embed(reshape(input, (-1,)), offset)


def _matrices(name: str, tensor: Any) -> None:
    if tensor._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@takes_out(out_dtype="result")
def tril(input: Any, diagonal: int = 0) -> Any:
    """Keep the lower triangle."""
    _matrices("tril", input)
    return record(s.triangle, (input,), {"upper": False, "k": diagonal}, "TrilBackward0")


@takes_out(out_dtype="result")
def triu(input: Any, diagonal: int = 0) -> Any:
    """Keep the upper triangle."""
    _matrices("triu", input)
    return record(s.triangle, (input,), {"upper": True, "k": diagonal}, "TriuBackward0")


def _triangle_indices(name: str, row: int, col: int, offset: int, dtype: Any, device: Any) -> Any:
    if dtype is None and type(row) is type(col) is type(offset) is int and 0 <= row <= FEW and 0 <= col <= FEW:
        return finish(_few_indices(name, row, col, offset).copy(), device)
    for which, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{which} must be non-negative, got{n}")
    dtype = _dtypes.int64 if dtype is None else dtype
    if dtype not in (_dtypes.int64, _dtypes.int32):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype._scalar_name}'")
    return finish(_indices(name, row, col, offset).astype(dtype.numpy), device)


def _indices(name: str, row: int, col: int, offset: int) -> Any:
    find = np.tril_indices if name == "tril_indices" else np.triu_indices
    return np.stack(find(row, offset, col))


_few_indices = lru_cache(64)(_indices)  # of small matrices: programs ask for the same ones again and again
FEW = 32


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """Return the indices of the lower triangle, rows and columns."""
    return _triangle_indices("tril_indices", row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """Return the indices of the upper triangle, rows and columns."""
    return _triangle_indices("triu_indices", row, col, offset, dtype, device)
