"""The exponential of matrices."""

from __future__ import annotations

from .._core.numpy_namespace import numpy_namespace
from .._core.primitive import behind, general
from . import matrix_products  # noqa: F401 - the rules use its names
from .matrices import adjoint, columns, rows


@general(torch="linalg_matrix_exp", batch=behind, widens=True)
def matrix_exp(xp, x):
    if not x.size:
        return x.copy()
    if xp is numpy_namespace:
        from scipy.linalg import expm

        wide = "complex128" if x.dtype.kind == "c" else "float64"  # in float32 it loses a digit more than torch
        return expm(x.astype(wide, copy=False)).astype(x.dtype, copy=False)
    from cupyx.scipy.linalg import expm as cuda_expm

    flat = x.reshape(-1, *x.shape[-2:])
    return xp.module.stack([cuda_expm(one) for one in flat]).reshape(x.shape)


def _slope(xp, x, t):
    """The derivative along t: the upper right block of the exponential of [[x, t], [0, x]]."""
    n = x.shape[-1]
    rank = len(x.shape)
    above = xp.concat(x, t, axis=rank - 1)
    below = xp.concat(xp.zeros_like(x), x, axis=rank - 1)
    full = xp.matrix_exp(xp.concat(above, below, axis=rank - 2))
    return columns(xp, rows(xp, full, 0, n), n, 2 * n)


@matrix_exp.vjp("x")
def matrix_exp_dx(xp, g, x):
    return _slope(xp, adjoint(xp, x), g)


matrix_exp.jvp(lambda xp, t, x: _slope(xp, x, t))
