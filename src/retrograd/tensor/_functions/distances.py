"""Distances under torch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._ops import norms as ops
from ...overrides import overridable
from .. import _base
from .._recording.record import record
from .elementwise import sub
from .matrix_checks import need_tensor, scalar_name
from .norms import vector

MANY = 25  # rows; from here on distances come from inner products
MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@overridable(raised="cuda")
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Compute the p-norm of the difference."""
    need_tensor(input, "dist", "input")
    need_tensor(other, "dist", "other", 2)
    gap = sub(input, other)
    if gap._array.dtype.kind in "biu":
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {scalar_name(gap)} instead."
        )
    return vector(gap, p, None, False, None)


@overridable(raised="cpu cuda")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """Compute the p-norm distance between every row of one matrix and every row of another."""
    need_tensor(x1, "cdist", "x1")
    need_tensor(x2, "cdist", "x2", 2)
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor._array.dtype.kind in "biuc":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(tensor)}")
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {tensor._array.ndim}D")
    x, y = x1._array, x2._array
    if x.shape[-1] != y.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    try:
        np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    except ValueError:
        raise _errors.broadcast_error(tuple(x.shape[:-2]), tuple(y.shape[:-2])) from None
    if x.dtype != y.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}")
    _need_kernel(x1, "cdist")
    by_products = MODES[compute_mode]
    if by_products is None:
        by_products = x.shape[-2] > MANY or y.shape[-2] > MANY
    params = {"p": p, "products": bool(by_products and p == 2)}
    return record(ops.cdist, (x1, x2), params, "CdistBackward0")


def _need_kernel(tensor: Any, name: str) -> None:
    if tensor._array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(tensor)}'")


@overridable(raised="cuda")
def pdist(input: Any, p: float = 2) -> Any:
    """Compute the p-norm distance between every two rows of a matrix."""
    need_tensor(input, "pdist", "input")
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input._array.dtype.kind in "biuc":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    _need_kernel(input, "pdist")
    pairs = tuple(_base.wrap(at) for at in np.triu_indices(input._array.shape[0], 1))
    return record(ops.cdist, (input, input), {"p": p, "products": False}, "CdistBackward0")[pairs]
