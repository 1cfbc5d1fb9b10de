"""torch.masked._ops: reductions and normalisations of the elements that a mask lets through."""

from __future__ import annotations

import math
from typing import Any

from .. import _dtypes
from .._errors import wrap_dim
from .._tracebacks import guard_public as _guard_public
from ..overrides import called
from ..tensor import _base, find
from ..tensor._functions import cumulative as _cumulative
from ..tensor._functions import elementwise as _pointwise
from ..tensor._functions import reduce as _reductions
from ..tensor._functions import selecting as _selecting
from ..tensor._functions.norms import vector_norm


# ---- masks: what stands where an element is masked out, so that it does not count ----
def mask_for(tensor: Any, mask: Any) -> Any:
    """Return a mask as booleans in a tensor's shape."""
    if mask.dim() > tensor.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if tuple(mask.shape) != tuple(tensor.shape):
        mask = mask.expand(tuple(tensor.shape))
    return mask if mask.dtype is _dtypes.bool_ else mask.ne(0)


def filled(tensor: Any, mask: Any, value: Any) -> Any:
    """Put a number where the mask is false."""
    return tensor if mask is None else _pointwise.where(mask_for(tensor, mask), tensor, value)


def lowest(name: str, tensor: Any) -> Any:
    """Return the smallest number of a tensor's dtype: the largest of none."""
    dtype = _base.dtype_of(tensor)
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return -math.inf
    return _limits(name, dtype).min


def highest(name: str, tensor: Any) -> Any:
    """Return the largest number of a tensor's dtype: the smallest of none."""
    dtype = _base.dtype_of(tensor)
    return math.inf if dtype.is_floating_point else _limits(name, dtype).max


def _limits(name: str, dtype: Any) -> Any:
    if dtype is _dtypes.bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return _dtypes.iinfo(dtype)


def summed_dtype(tensor: Any, dtype: Any) -> Any:
    """Return the dtype of a sum: that asked for, int64 for integers."""
    own = _base.dtype_of(tensor)
    return dtype if dtype is not None else own if own.kind >= _dtypes.FLOAT_KIND else _dtypes.int64


def own_dtype(tensor: Any, dtype: Any) -> Any:
    """Return the dtype asked for, or the tensor's."""
    return _base.dtype_of(tensor) if dtype is None else dtype


def dims_of(tensor: Any, dim: Any) -> tuple[int, ...]:
    """Read torch's dim argument: None or () means all; in order, without repetitions."""
    rank = tensor.dim()
    if dim is None or dim == ():
        return tuple(range(rank)) if rank else (0,)
    dims: list[int] = []
    for one in (dim,) if isinstance(dim, int) else dim:
        axis = wrap_dim(one, rank)
        if axis in dims:
            raise RuntimeError(f"dim={axis} appears multiple times in the list of dims")
        dims.append(axis)
    return tuple(sorted(dims))


def input_mask(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tell which elements of the input of a masked function count."""
    mask = kwargs.get("mask")
    if mask is None:
        return input.new_ones(tuple(input.shape), dtype=_dtypes.bool_)
    return mask_for(input, mask)


def output_mask(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Tell which elements of a masked function's result come of any element at all."""
    mask = input_mask(input, **kwargs)
    name = function.__name__
    if name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize"):
        return mask
    given = args[1:] if name == "norm" else args
    dim = given[0] if given else kwargs.get("dim", -1 if name == "median" else None)
    return _reductions.any(mask, dims_of(input, dim), bool(kwargs.get("keepdim")))


# ---- reductions ----
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


def _spread(name: str, what: str, *, root: bool) -> Any:
    def function(
        input: Any,
        dim: Any = None,
        unbiased: Any = None,
        *,
        correction: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Any = None,
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

    return called(function, name, f"Compute the {what} of the elements.")


var = _spread("var", "variance", root=False)
std = _spread("std", "standard deviation", root=True)


# ---- running sums and normalisations along a dimension ----
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


_guard_public(globals())
