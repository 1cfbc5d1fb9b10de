"""Running sums and normalisations along a dimension, over the elements that a mask lets through."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import find
from ..tensor._functions import cumulative as _cumulative
from ..tensor._functions import elementwise as _pointwise
from ..tensor._functions import reduce as _reductions
from ._filling import filled, highest, lowest, own_dtype
from ._reducing import norm


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Sum up along a dimension."""
    return _cumulative.cumsum(filled(input, mask, 0), dim, dtype=own_dtype(input, dtype))


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Multiply up along a dimension."""
    return _cumulative.cumprod(filled(input, mask, 1), dim, dtype=own_dtype(input, dtype))


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Normalise exponentials along a dimension."""
    given = input if mask is None else filled(input, mask, lowest("amax", input))
    return _reductions.softmax(given, dim, dtype=own_dtype(input, dtype))


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Take the logarithm of softmax."""
    given = input if mask is None else filled(input, mask, lowest("amax", input))
    return _reductions.log_softmax(given, dim, dtype=own_dtype(input, dtype))


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Normalise exponentials of the negative along a dimension."""
    given = input if mask is None else filled(input, mask, highest("amin", input))
    return _reductions.softmax(_pointwise.neg(given), dim, dtype=own_dtype(input, dtype))


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """Divide by a norm along a dimension."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    size = _pointwise.maximum(size, size.new_full((), eps))
    result = _pointwise.div(filled(input, mask, 0), size)
    return result if dtype is None else result.to(dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """Compute log(exp(x) + exp(y)) of two tensors."""
    pair = filled(input, input_mask, -math.inf), filled(other, other_mask, -math.inf)
    return find("logaddexp")(*pair).to(own_dtype(input, dtype))
