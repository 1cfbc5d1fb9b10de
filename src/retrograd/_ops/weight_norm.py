"""Weight normalisation: the slices of an array along one axis are given the norms of another array."""

from __future__ import annotations

from .._core.fused import fused
from .._native.program import formula


def _other_axes(ndim, axis):
    return tuple(k for k in range(ndim) if k != axis)


@formula(wide=(1,))
def _with_norms(xp, v, g, *, axis):
    """Return slices with given norms, and the norms that they had."""
    norm = xp.sqrt(xp.sum(v * v, axis=_other_axes(v.ndim, axis), keepdims=True))
    return v * (g / norm), norm


@formula
def _with_norms_back(xp, grad, v, g, norm, *, axis):
    inner = xp.sum(grad * v, axis=_other_axes(v.ndim, axis), keepdims=True) / norm
    return (grad - v * (inner / norm)) * (g / norm), inner


@fused("WeightNormInterfaceBackward0", takes_halves=True, shows="dim=axis g v")
def weight_norm(xp, v, g, *, axis):
    """v * g / |v|, the norm taken over all axes but one."""
    out, norm = _with_norms(xp, v, g, axis=axis)
    return out, (norm,)


@weight_norm.backward
def weight_norm_back(xp, grad, needed, residuals, v, g, *, axis):
    return _with_norms_back(xp, grad, v, g, *residuals, axis=axis)


@weight_norm.decomposition
def weight_norm_parts(xp, v, g, *, axis):
    norm = xp.sqrt(xp.sum(v * v, axis=_other_axes(v.ndim, axis), keepdims=True))
    return v * (g / norm)
