"""Masks: what stands where an element is masked out, so that it does not count."""

from __future__ import annotations

import math
from typing import Any

from .. import _dtypes
from ..tensor import _base
from ..tensor._functions import elementwise as _pointwise


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
    from .._errors import wrap_dim

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
    from ..tensor._functions import reduce as _reductions

    mask = input_mask(input, **kwargs)
    name = function.__name__
    if name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize"):
        return mask
    given = args[1:] if name == "norm" else args
    dim = given[0] if given else kwargs.get("dim", -1 if name == "median" else None)
    return _reductions.any(mask, dims_of(input, dim), bool(kwargs.get("keepdim")))
