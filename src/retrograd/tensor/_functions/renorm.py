"""Slices whose norm is limited."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._ops import renorm as ops
from ...overrides import takes_out
from .. import _base
from .._recording.record import record


@takes_out(raised="cuda", out_dtype="result")
def renorm(input: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Scale down the slices along a dimension whose p-norm is larger than `maxnorm`."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    rank = input._array.ndim
    if rank < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {rank} dimensions")
    axis = _errors.wrap_dim(dim, rank)
    if input._array.dtype.kind in "iub":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{_base.dtype_of(input)._scalar_name}"
        )
    return record(ops.renorm, (input,), {"p": p, "axis": axis, "limit": maxnorm}, None, {"dim": dim})
