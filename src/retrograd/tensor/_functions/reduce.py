"""Reductions, and softmax along one dimension."""

from __future__ import annotations

from operator import index
from typing import Any

from numpy import count_nonzero as count_of_true

from ... import _dtypes, _errors
from ..._core.arrays import Batched
from ..._ops import order
from ..._ops import reduce as r
from ..._ops import softmax as exponentials
from ...overrides import overridable, takes_out
from .. import _base
from .._aliasing.entering import is_of_innermost
from .._object.return_types import make, named
from .._recording.out_dtypes import (
    EVERYTHING,
    computes_in_dtype_of_out,
    needs_dim,
    needs_dtype_of_input,
    needs_dtype_of_result,
    needs_truth,
)
from .._recording.record import NDARRAY, record
from .._recording.refusals import kernel, refuse, refused
from . import elementwise as _pointwise

return_max, return_min = make("max", "values", "indices"), make("min", "values", "indices")
_ALL = tuple(tuple(range(n)) for n in range(65))


def _axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Read torch's dim argument: None or () means all."""
    if dim is None or dim is EVERYTHING:
        return _ALL[ndim]
    if type(dim) is int and 0 <= dim < ndim:
        return (dim,)
    if not isinstance(dim, (tuple, list)):
        axis = _errors.wrap_dim(index(dim), ndim)
        return (axis,) if ndim else ()
    if not dim:
        return _ALL[ndim]
    axes = tuple(_errors.wrap_dim(d, ndim) for d in dim)
    if len(set(axes)) != len(axes):
        twice = next(a for a in axes if axes.count(a) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return axes if ndim else ()


def _given(dim: Any) -> tuple[int, ...]:
    """Return the dim argument as torch's node shows it."""
    if type(dim) is int:
        return (dim,)
    return () if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _float_or_given(tensor: Any, dtype: Any, name: str) -> Any:
    if dtype is not None:
        if dtype.kind < _dtypes.FLOAT_KIND:
            raise RuntimeError(
                f"{name}(): could not infer output dtype. Optional dtype must be either a floating point or complex "
                f"dtype. Got: {dtype._scalar_name}"
            )
        return tensor.to(dtype)
    if tensor._array.dtype.kind in "iub":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {_base.dtype_of(tensor)._scalar_name}\nHint: x.float().{name}(), or {name}(dtype=torch.float32)."
        )
    return tensor


def _widened(tensor: Any, dtype: Any) -> Any:
    """Sums of small integers are int64."""
    if dtype is not None:
        return tensor.to(dtype)
    return tensor.to(_dtypes.int64) if tensor._array.dtype.kind in "iub" else tensor


@takes_out(raised="cuda")
@needs_dim
@computes_in_dtype_of_out
def sum(input: Any, dim: Any = EVERYTHING, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over dimensions.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep the summed dimensions, with size 1
        dtype: convert to this dtype first; integers and booleans are summed as int64

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.sum()
        tensor(10.)
        >>> torch.sum(x, dim=1, keepdim=True)
        tensor([[3.],
                [7.]])
    """
    tensor = _widened(input, dtype)
    params = {"axis": _axes(dim, tensor._array.ndim), "keepdims": keepdim}
    if dim is None or dim is EVERYTHING:
        if keepdim and dim is not None:
            raise TypeError("sum(): keepdim without dim")
        return record(r.sum, (tensor,), params, "SumBackward0")
    return record(r.sum, (tensor,), params, "SumBackward1", {"dim": _given(dim)})


@takes_out
def mean(input: Any, dim: Any = EVERYTHING, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Average over dimensions.

    Args:
        input: a tensor of floats or complex numbers
        dim: a dimension or several; without it, all
        keepdim: keep the averaged dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), dim=0)
        tensor([2.0000, 3.5000])
    """
    tensor = _float_or_given(input, dtype, "mean")
    params = {"axis": _axes(dim, tensor._array.ndim), "keepdims": keepdim}
    if dim is None or dim is EVERYTHING:
        if keepdim and dim is not None:
            raise TypeError("mean(): keepdim without dim")
        return record(r.mean, (tensor,), params, "MeanBackward0")
    return record(r.mean, (tensor,), params, "MeanBackward1", {"dim": _given(dim)})


@takes_out(raised="cpu cuda")
@needs_dim
@computes_in_dtype_of_out
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Multiply all elements, or those along a dimension.

    Args:
        input: a tensor
        dim: the dimension; without it, all
        keepdim: keep that dimension, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.prod(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([ 2., 12.])
    """
    if isinstance(dim, (tuple, list)) or (dim is None and keepdim):
        raise TypeError("prod(): several dims, or keepdim without dim")
    tensor = _widened(input, dtype)
    axes = _axes(dim, tensor._array.ndim)
    name = "ProdBackward0" if dim is None else "ProdBackward1"
    return record(r.prod, (tensor,), {"axis": axes, "keepdims": keepdim}, name, {"dim": dim})


@takes_out
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over dimensions; NaN counts as 0.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep the summed dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.nansum(torch.tensor([1.0, float("nan"), 3.0]))
        tensor(4.)
    """
    kind = input._array.dtype.kind
    if _dtypes.holds_complex(input._array.dtype):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if kind in "iub":
        return sum(input, dim, keepdim, dtype=dtype)
    tensor = input if dtype is None else input.to(dtype)
    if tensor._array.dtype.kind not in "fV":
        refuse("nansum", tensor._array.dtype)
    params = {"axis": _axes(dim, tensor._array.ndim), "keepdims": keepdim}
    return record(r.nansum, (tensor,), params, None, {"dim": None if dim is None else _given(dim)})


@takes_out
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Average over dimensions, leaving NaN out.

    Args:
        input: a tensor of floats
        dim: a dimension or several; without it, all
        keepdim: keep the averaged dimensions, with size 1
        dtype: convert to this dtype first

    Example:
        >>> torch.nanmean(torch.tensor([1.0, float("nan"), 3.0]))
        tensor(2.)
    """
    if input._array.dtype.kind in "iub":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{_base.dtype_of(input)._scalar_name}"
        )
    _float_or_given(input, dtype, "nanmean")
    array = input._array
    if type(array) is NDARRAY and dim is None and not keepdim and dtype is None and array.dtype.char in "fd":
        there = array.dtype.type(count_of_true(array == array))
        return _pointwise._div(nansum(input), _base.wrap(there))
    count = sum(_pointwise.logical_not(_pointwise.isnan(input.detach())), dim, keepdim)
    total = nansum(input, dim, keepdim, dtype=dtype)
    if total._array.ndim or total._array.dtype.itemsize > 2:  # a half may not hold the count, but is divided by it
        count = count.to(_base.dtype_of(total))
    return _pointwise.div(total, count)


# ---- extremes ----
def _not_empty(tensor: Any, dims: Any, name: str) -> None:
    """Refuse to reduce over nothing; `dims` are as the caller gave them."""
    if not dims and not tensor._array.size:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for dim in dims:
        if tensor._array.ndim and tensor._array.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _shared_extreme(name: str, primitive: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    array = input._array
    axes, given = _axes(dim, array.ndim), _given(dim)
    if not array.size:
        _not_empty(input, given, name)
    elif array.dtype.kind == "c":
        refuse(name, array.dtype)
    node = "AmaxBackward0" if name == "amax" else "AminBackward0"
    return record(primitive, (input,), {"axis": axes, "keepdims": keepdim}, node, {"dim": given})


refused("amax", c=kernel("max_values_cpu"))
refused("amin", c=kernel("min_values_cpu"))


@takes_out
@needs_dtype_of_input
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Take the largest elements over dimensions; equal ones share the gradient.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.amax(torch.tensor([[1, 5], [7, 2]]), dim=1)
        tensor([5, 7])
    """
    return _shared_extreme("amax", r.max_, input, dim, keepdim)


@takes_out
@needs_dtype_of_input
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Take the smallest elements over dimensions; equal ones share the gradient.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.amin(torch.tensor([[1, 5], [7, 2]]), dim=1)
        tensor([1, 2])
    """
    return _shared_extreme("amin", r.min_, input, dim, keepdim)


def _extreme(which: str, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if other is not None or isinstance(dim, _base.Tensor):
        other = dim if other is None else other
        return _pointwise.maximum(input, other) if which == "max" else _pointwise.minimum(input, other)
    if (keepdim and dim is None) or isinstance(dim, (tuple, list)):
        raise TypeError(f"{which}(): several dims, or keepdim without dim")
    if dim is None:
        array = input._array
        if not array.size:
            _not_empty(input, (), which)
        if _dtypes.holds_complex(array.dtype):
            refuse(f"{which}_all", array.dtype)
        if type(array) is Batched and is_of_innermost(
            array
        ):  # torch takes the first of equal ones there, and saves its place
            return _extreme(which, input.reshape(-1), 0, False, None)[0]
        params = {"axis": _ALL[array.ndim], "keepdims": False}
        if which == "max":
            return record(r.max_of_all, (input,), params, "MaxBackward1")
        return record(r.min_of_all, (input,), params, "MinBackward1")
    array = input._array
    if _dtypes.holds_complex(array.dtype):
        refuse(f"{which}_at", array.dtype)
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    if not array.size:
        _not_empty(input, (axis,), which)
    params, shown = {"axis": axis, "keepdims": keepdim}, {"dim": dim}
    if which == "max":
        return named(return_max, record(order.max_at, (input,), params, "MaxBackward0", shown))
    return named(return_min, record(order.min_at, (input,), params, "MinBackward0", shown))


refused("max_at", c=(RuntimeError, "max(): does not support complex input"))
refused("min_at", c=(RuntimeError, "min(): does not support complex input"))
refused("max_all", "min_all", c=kernel("{name}"))


@takes_out
@needs_dtype_of_result
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Take the largest element, or values and indices along a dimension, or the elementwise maximum of two tensors.

    Args:
        input: a tensor
        dim: with a dimension, the result has `values` and `indices`; a tensor here is `other`
        keepdim: keep that dimension, with size 1
        other: a second tensor: the result is `maximum(input, other)`

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.max()
        tensor(7.)
        >>> values, indices = torch.max(x, dim=1)
        >>> values, indices
        (tensor([5., 7.]), tensor([1, 0]))
    """
    return _extreme("max", input, dim, keepdim, other)


@takes_out
@needs_dtype_of_result
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Take the smallest element, or values and indices along a dimension, or the elementwise minimum of two tensors.

    Args:
        input: a tensor
        dim: with a dimension, the result has `values` and `indices`; a tensor here is `other`
        keepdim: keep that dimension, with size 1
        other: a second tensor: the result is `minimum(input, other)`

    Example:
        >>> torch.min(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=0).indices
        tensor([0, 1])
    """
    return _extreme("min", input, dim, keepdim, other)


def _positions(primitive: Any, name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    refuse(name, input._array.dtype)
    if dim is None:
        if input._array.size == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        out = record(primitive, (input,), {"axis": None, "keepdims": False}, None)
        return out.reshape((1,) * input._array.ndim) if keepdim else out
    axis = _errors.wrap_dim(dim, input._array.ndim)
    if not input._array.ndim:
        return record(primitive, (input,), {"axis": None, "keepdims": False}, None)
    _not_empty(input, (axis,), name)
    return record(primitive, (input,), {"axis": axis, "keepdims": keepdim}, None)


refused(
    "argmax",
    "argmin",
    c=(RuntimeError, "{name}(): does not support complex input"),
    b=(RuntimeError, "{name}(): does not support bool input"),
)


@takes_out
@needs_dtype_of_result
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the largest element, of all or along a dimension; of equal ones, one of them.

    Args:
        input: a tensor
        dim: the dimension; without it, the index counts through the flattened tensor
        keepdim: keep that dimension, with size 1

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> torch.argmax(x), torch.argmax(x, dim=1)
        (tensor(2), tensor([1, 0]))
    """
    return _positions(r.argmax, "argmax", input, dim, keepdim)


@takes_out
@needs_dtype_of_result
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the smallest element, of all or along a dimension; of equal ones, one of them.

    Args:
        input: a tensor
        dim: the dimension; without it, the index counts through the flattened tensor
        keepdim: keep that dimension, with size 1

    Example:
        >>> torch.argmin(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([0, 1])
    """
    return _positions(r.argmin, "argmin", input, dim, keepdim)


# ---- truth ----
def _truth(primitive: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    # here an empty list of dims is no dims, unlike everywhere else
    axes = () if isinstance(dim, (tuple, list)) and not dim else _axes(dim, input._array.ndim)
    result = record(primitive, (input,), {"axis": axes, "keepdims": keepdim}, None)
    return result.to(_dtypes.uint8) if input._array.dtype == _dtypes.uint8.numpy else result


@takes_out
@needs_truth
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Tell whether any element is True, or not zero.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.any(torch.tensor([[False, True], [False, False]]), dim=1)
        tensor([ True, False])
    """
    return _truth(r.any_, input, dim, keepdim)


@takes_out
@needs_truth
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Tell whether all elements are True, or not zero.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.all(torch.tensor([[True, True], [False, True]]), dim=1)
        tensor([ True, False])
    """
    return _truth(r.all_, input, dim, keepdim)


@overridable(forms="function method spread")
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Count the elements that are not zero.

    Args:
        input: a tensor
        dim: a dimension or several; without it, all

    Example:
        >>> torch.count_nonzero(torch.tensor([[1, 0], [2, 3]]), dim=0)
        tensor([2, 1])
    """
    return record(r.count_nonzero, (input,), {"axis": _axes(dim, input._array.ndim), "keepdims": False}, None)


# ---- exponentials ----
@takes_out
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Compute log(sum(exp(input))) without overflow.

    Args:
        input: a tensor
        dim: a dimension or several
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), dim=0)
        tensor(1000.6932)
    """
    tensor = input.to(_dtypes.get_default_dtype()) if input._array.dtype.kind in "iub" else input
    axes = _axes(dim, tensor._array.ndim)
    return record(r.logsumexp, (tensor,), {"axis": axes, "keepdims": keepdim}, None, {"dim": _given(dim)})


def _normalised(primitive: Any, name: str, input: Any, dim: int, dtype: Any) -> Any:
    tensor = input if dtype is None else input.to(dtype)
    array = tensor._array
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    if array.dtype.kind not in "fV" and array.size:
        refuse(f"{name}_lastdim" if axis + 1 >= array.ndim else name, array.dtype)
    return record(primitive, (tensor,), {"axis": axis}, None, {"dim": dim})


refused("softmax", "softmax_lastdim", "log_softmax", "log_softmax_lastdim", bic=kernel("{name}_kernel_impl"))


@takes_out(raised="cuda")
@needs_dtype_of_result
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Turn numbers along a dimension into probabilities: exp(input) divided by its sum.

    Args:
        input: a tensor
        dim: the dimension along which the results sum to 1
        dtype: convert to this dtype first

    Example:
        >>> torch.softmax(torch.tensor([0.0, 1.0, 2.0]), dim=0)
        tensor([0.0900, 0.2447, 0.6652])
    """
    return _normalised(exponentials.softmax, "softmax", input, dim, dtype)


@takes_out(raised="cuda")
@needs_dtype_of_result
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Compute log(softmax(input)), exact also where a probability is close to 0.

    Args:
        input: a tensor
        dim: the dimension along which the probabilities sum to 1
        dtype: convert to this dtype first

    Example:
        >>> torch.log_softmax(torch.tensor([0.0, 1.0, 2.0]), dim=0)
        tensor([-2.4076, -1.4076, -0.4076])
    """
    return _normalised(exponentials.log_softmax, "log_softmax", input, dim, dtype)
