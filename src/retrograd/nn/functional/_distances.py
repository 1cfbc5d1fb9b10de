"""Distances between vectors."""

from __future__ import annotations

from typing import Any

from ..._dtypes import promote_types
from ..._ops import norms
from ...autograd.grad_mode import no_grad
from ...overrides import overridable
from ...tensor._functions.norms import pdist as pdist
from ...tensor._functions.norms import vector
from ...tensor._functions.stacking import broadcast_tensors
from ...tensor._recording.record import record
from ._public import public_names


@overridable(raised="cuda")
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Any:
    """Return the cosine of the angle between vectors along a dimension.

    Args:
        x1: a tensor
        x2: a tensor; shapes broadcast
        dim: the dimension
        eps: the smallest length of a vector

    Example:
        >>> F.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """
    dtype = promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype._scalar_name}")
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    x1, x2 = x1.to(dtype), x2.to(dtype)
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    return (_directions(x1, dim, eps) * _directions(x2, dim, eps)).sum(dim)


def _directions(x: Any, dim: int, eps: float) -> Any:
    """Divide vectors by their norms. A bound in place of a short one has its gradient, as in torch; its tangent is 0."""
    length = vector(x, 2, dim, True, None).clone()
    with no_grad():
        length.clamp_min_(eps)
    return x / length


@overridable
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Any:
    """Return the distances of vectors along the last dimension.

    Args:
        x1: (..., D)
        x2: (..., D)
        p: the order of the norm
        eps: what is added to the differences
        keepdim: keep the last dimension, with size 1

    Example:
        >>> F.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    gap = x1 - x2 + eps
    axis = (gap.dim() - 1,) if gap.dim() else ()
    return record(norms.norm, (gap,), {"p": p, "axis": axis, "keepdims": bool(keepdim)}, "NormBackward1")


__all__ = public_names(globals(), "pdist")
