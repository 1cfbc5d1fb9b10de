"""Weight normalisation: the slices of an array along one axis are given the norms of another array."""

from __future__ import annotations

from .._core.fused import fused


def _other_axes(ndim, axis):
    return tuple(k for k in range(ndim) if k != axis)


def _letters(ndim, axis):
    every = "abcdefghij"[:ndim]
    return f"{every},{every}->{every[axis]}"


def _along(values, ndim, axis):
    """Put a vector back on its axis."""
    return values.reshape([-1 if k == axis else 1 for k in range(ndim)])


@fused("WeightNormInterfaceBackward0", shows="dim=axis g v")
def weight_norm(xp, v, g, *, axis):
    """v * g / |v|, the norm taken over all axes but one."""
    norm = _along(xp.module.sqrt(xp.module.einsum(_letters(v.ndim, axis), v, v)), v.ndim, axis)
    return v * (g / norm), (norm,)


@weight_norm.backward
def weight_norm_back(xp, grad, needed, residuals, v, g, *, axis):
    (norm,) = residuals
    inner = _along(xp.module.einsum(_letters(v.ndim, axis), grad, v), v.ndim, axis)
    dv = None
    if needed[0]:
        dv = v * (-inner / (norm * norm))
        dv += grad
        dv *= g / norm
    return dv, inner / norm if needed[1] else None


@weight_norm.decomposition
def weight_norm_parts(xp, v, g, *, axis):
    norm = xp.sqrt(xp.sum(v * v, axis=_other_axes(v.ndim, axis), keepdims=True))
    return v * (g / norm)
