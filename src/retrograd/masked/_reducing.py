"""Reductions of the elements that a mask lets through."""

from __future__ import annotations

import math
from typing import Any

from .. import _dtypes
from ..tensor import _base
from ..tensor._functions import elementwise as _pointwise
from ..tensor._functions import reduce as _reductions
from ..tensor._functions import selecting as _selecting
from ..tensor._functions.norms import vector_norm
from ._filling import dims_of, filled, highest, input_mask, lowest, mask_for, own_dtype, summed_dtype


def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Sum the elements."""
    dtype = summed_dtype(input, dtype)
    return _reductions.sum(filled(input, mask, 0), dims_of(input, dim), bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Multiply the elements."""
    result = filled(input, mask, 1).to(summed_dtype(input, dtype))
    for axis in reversed(dims_of(input, dim)):
        result = _reductions.prod(result, axis, bool(keepdim))
    return result


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Take the largest element."""
    given = input if mask is None else filled(input, mask, lowest("amax", input))
    return _reductions.amax(given, dims_of(input, dim), bool(keepdim)).to(own_dtype(input, dtype))


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Take the smallest element."""
    given = input if mask is None else filled(input, mask, highest("amin", input))
    return _reductions.amin(given, dims_of(input, dim), bool(keepdim)).to(own_dtype(input, dtype))


def argmax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the position of the largest element, in the input's dtype, as torch."""
    given = input if mask is None else filled(input, mask, lowest("argmax", input))
    return _reductions.argmax(given, dim, bool(keepdim)).to(own_dtype(input, dtype))


def argmin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the position of the smallest element, in the input's dtype, as torch."""
    given = input if mask is None else filled(input, mask, highest("argmin", input))
    return _reductions.argmin(given, dim, bool(keepdim)).to(own_dtype(input, dtype))


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Compute log(sum(exp(x))) of the elements."""
    given = input if mask is None else filled(input, mask, lowest("logsumexp", input))
    return _reductions.logsumexp(given, dims_of(input, dim), bool(keepdim)).to(own_dtype(input, dtype))


def _count(input: Any, dims: tuple[int, ...], keepdim: bool, mask: Any, dtype: Any) -> Any:
    """Count the elements that the mask lets through, as a tensor."""
    return _reductions.sum(input_mask(input, mask=mask), dims, keepdim).to(dtype)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Average the elements."""
    for word, one in (("Optional", dtype), ("Input", _base.dtype_of(input))):
        if one is not None and one.kind < _dtypes.FLOAT_KIND and (word == "Optional" or dtype is None):
            raise ValueError(
                f"mean(): Could not infer output dtype. {word} dtype must be either a floating point or complex dtype. "
                f"Got: {one}"
            )
    dims = dims_of(input, dim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return _pointwise.div(total, _count(input, dims, bool(keepdim), mask, _base.dtype_of(total)))


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Take the median of the elements along a dimension, of two the lower."""
    own = _base.dtype_of(input)
    if own.is_floating_point:
        return _selecting.nanmedian(filled(input, mask, math.nan), dim, keepdim)[0]
    if mask is not None and not bool(_reductions.all(_reductions.any(mask_for(input, mask), dim))):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    given = filled(input.to(_dtypes.float64), mask, math.nan)
    return _selecting.nanmedian(given, dim, keepdim)[0].to(own_dtype(input, dtype))


def norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Compute a vector norm of the elements."""
    given = filled(input, mask, math.inf if ord == -math.inf else 0)
    return vector_norm(given, ord, dims_of(input, dim), bool(keepdim), dtype=dtype)


def _spread(
    input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any, root: bool
) -> Any:
    assert unbiased is None or correction is None, "Only one of unbiased and correction may be given"
    off = correction if correction is not None else 0 if unbiased is False else 1
    own = _base.dtype_of(input)
    if dtype is None:
        dtype = own if own.kind >= _dtypes.FLOAT_KIND else _dtypes.get_default_dtype()
    # integers are averaged in the default dtype, as torch
    wide = dtype if dtype.kind >= _dtypes.FLOAT_KIND else _dtypes.get_default_dtype()
    dims = dims_of(input, dim)
    count = _count(input, dims, True, mask, wide)
    centre = _pointwise.div(sum(input, dims, keepdim=True, dtype=wide, mask=mask), count)
    away = _pointwise.sub(input, centre)
    squares = _pointwise.mul(away, _pointwise.conj(away))
    total = sum(squares, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    freedom = _pointwise.clamp(_pointwise.sub(_count(input, dims, bool(keepdim), mask, wide.to_real()), off), 0)
    result = _pointwise.div(total, freedom).to(dtype)
    return _pointwise.sqrt(result) if root else result


def var(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Compute the variance of the elements."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask, root=False)


def std(
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Compute the standard deviation of the elements."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask, root=True)
