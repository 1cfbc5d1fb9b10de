"""Pairs of real numbers read as complex ones; the other way is `view_as_real` in `shape.py`."""

from __future__ import annotations

from .._core.primitive import behind, linear
from .._dtypes import complex32
from .._stored import as_storage_only
from . import shape as _shape  # noqa: F401 - declares view_as_real


@linear(batch=behind, view=True)
def view_as_complex(xp, x):
    """The last axis, of size two, as real and imaginary parts: the same memory where its strides allow."""
    x = xp.module.asarray(x)
    dtype = {2: complex32.numpy, 4: "F", 8: "D"}[x.dtype.itemsize]
    if x.strides[-1] != x.itemsize or any(s % (2 * x.itemsize) for s in x.strides[:-1]):
        x = xp.module.ascontiguousarray(x)  # gradients and tangents lie as they like
    return as_storage_only(x.view(dtype)[..., 0])


@view_as_complex.vjp("x")
def view_as_complex_dx(xp, g):
    return xp.view_as_real(g)
