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
    """Return the diagonal of a matrix, or the matrix with a vector as its diagonal.

    Args:
        input: a tensor with one or two dimensions
        diagonal: which one: above 0 the main diagonal, below 0 under it

    Example:
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    ndim = input._array.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return copied(diagonal_view(input, diagonal))


@takes_out
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Make matrices whose diagonals are the last dimension.

    Args:
        input: a tensor
        offset: which diagonal
        dim1: where the rows are in the result
        dim2: where the columns are

    Example:
        >>> torch.diag_embed(torch.tensor([[1, 2]]))
        tensor([[[1, 0],
                 [0, 2]]])
    """
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
    """Keep the lower triangle of matrices; the rest becomes 0.

    Args:
        input: a tensor (..., rows, columns)
        diagonal: the last diagonal that stays; 0 is the main one

    Example:
        >>> torch.tril(torch.ones(3, 3))
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]])
    """
    _matrices("tril", input)
    return record(s.triangle, (input,), {"upper": False, "k": diagonal}, "TrilBackward0")


@takes_out(out_dtype="result")
def triu(input: Any, diagonal: int = 0) -> Any:
    """Keep the upper triangle of matrices; the rest becomes 0.

    Args:
        input: a tensor (..., rows, columns)
        diagonal: the first diagonal that stays; 0 is the main one

    Example:
        >>> torch.triu(torch.ones(3, 3), diagonal=1)
        tensor([[0., 1., 1.],
                [0., 0., 1.],
                [0., 0., 0.]])
    """
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
    """Return the indices of the lower triangle of a matrix: its rows and its columns.

    Args:
        row: the number of rows
        col: the number of columns
        offset: the last diagonal that belongs to it
        dtype: int64 or int32

    Example:
        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """Return the indices of the upper triangle of a matrix: its rows and its columns.

    Args:
        row: the number of rows
        col: the number of columns
        offset: the first diagonal that belongs to it
        dtype: int64 or int32

    Example:
        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, device)
