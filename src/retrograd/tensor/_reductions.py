"""Reductions and what goes along one dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _dtypes, _errors
from .._ops import index as i
from .._ops import reduce as r
from .._ops import spread
from ..overrides import overridable, takes_out
from . import _base, _pointwise
from ._operands import not_a_tensor
from ._record import record
from ._refusals import refuse


def _axes(dim: Any, ndim: int, name: str = "") -> tuple[int, ...]:
    """Read torch's dim argument: None or () means all."""
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims:
        return tuple(range(ndim))
    axes = tuple(_errors.wrap_dim(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        twice = next(a for a in axes if axes.count(a) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return axes if ndim else ()


def _given(dim: Any) -> tuple[int, ...]:
    """Return the dim argument as torch's node shows it."""
    return () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)


def _float_or_given(tensor: Any, dtype: Any, name: str) -> Any:
    if dtype is not None:
        return tensor.to(dtype)
    if tensor._array.dtype.kind in "iub":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {_base.dtype_of(tensor)._scalar_name}"
        )
    return tensor


def _widened(tensor: Any, dtype: Any) -> Any:
    """Sums of small integers are int64."""
    if dtype is not None:
        return tensor.to(dtype)
    return tensor.to(_dtypes.int64) if tensor._array.dtype.kind in "iub" else tensor


@takes_out
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over dimensions."""
    if not isinstance(input, _base.Tensor):
        raise TypeError(not_a_tensor("sum", 1, input, "input"))
    tensor = _widened(input, dtype)
    axes = _axes(dim, tensor._array.ndim)
    name = "SumBackward0" if dim is None else "SumBackward1"
    result = record(r.sum, (tensor,), {"axis": axes, "keepdims": keepdim}, name, {"dim": _given(dim)})
    return result


@takes_out
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Average over dimensions."""
    tensor = _float_or_given(input, dtype, "mean")
    axes = _axes(dim, tensor._array.ndim)
    name = "MeanBackward0" if dim is None else "MeanBackward1"
    result = record(r.mean, (tensor,), {"axis": axes, "keepdims": keepdim}, name, {"dim": _given(dim)})
    return result


@overridable
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Multiply all elements, or along one dimension."""
    tensor = _widened(input, dtype)
    axes = _axes(dim, tensor._array.ndim)
    name = "ProdBackward0" if dim is None else "ProdBackward1"
    return record(r.prod, (tensor,), {"axis": axes, "keepdims": keepdim}, name, {"dim": dim})


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


@overridable
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Take the largest element; ties share the gradient."""
    axes = _axes(dim, input._array.ndim)
    _not_empty(input, _given(dim), "amax")
    if input._array.size:
        refuse("amax", input._array.dtype)
    return record(r.max_, (input,), {"axis": axes, "keepdims": keepdim}, "AmaxBackward0", {"dim": _given(dim)})


@overridable
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Take the smallest element; ties share the gradient."""
    axes = _axes(dim, input._array.ndim)
    _not_empty(input, _given(dim), "amin")
    if input._array.size:
        refuse("amin", input._array.dtype)
    return record(r.min_, (input,), {"axis": axes, "keepdims": keepdim}, "AminBackward0", {"dim": _given(dim)})


class ValuesAndIndices(NamedTuple):
    """Base of the named results of max, min and sort."""

    values: Any
    indices: Any


def _named(name: str) -> Any:
    def shown(self: Any) -> str:
        return f"torch.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"

    return type(name, (ValuesAndIndices,), {"__slots__": (), "__repr__": shown, "__module__": "torch.return_types"})


return_max, return_min, return_sort = _named("max"), _named("min"), _named("sort")


def _extreme(which: str, input: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        if input._array.size == 0:
            raise RuntimeError(
                f"{which}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        refuse(f"{which}_all", input._array.dtype)
        primitive = r.max_ if which == "max" else r.min_
        name = "MaxBackward1" if which == "max" else "MinBackward1"
        return record(primitive, (input,), {"axis": _axes(None, input._array.ndim), "keepdims": False}, name)
    if isinstance(dim, _base.Tensor):
        return _pointwise.maximum(input, dim) if which == "max" else _pointwise.minimum(input, dim)
    refuse(f"{which}_at", input._array.dtype)
    axis = _errors.wrap_dim(dim, input._array.ndim)
    _not_empty(input, (axis,), which)
    primitive = i.max_at if which == "max" else i.min_at
    name = "MaxBackward0" if which == "max" else "MinBackward0"
    values = record(primitive, (input,), {"axis": axis, "keepdims": keepdim}, name, {"dim": dim})
    return (return_max if which == "max" else return_min)(*values)


@overridable
def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Take the largest element, or values and indices along a dimension, or the elementwise maximum of two tensors."""
    return _extreme("max", input, dim, keepdim)


@overridable
def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Take the smallest element, or values and indices along a dimension, or the elementwise minimum of two tensors."""
    return _extreme("min", input, dim, keepdim)


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


@overridable
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the position of the largest element."""
    return _positions(r.argmax, "argmax", input, dim, keepdim)


@overridable
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the position of the smallest element."""
    return _positions(r.argmin, "argmin", input, dim, keepdim)


@overridable
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Tell whether any element is true."""
    return record(r.any_, (input,), {"axis": _axes(dim, input._array.ndim), "keepdims": keepdim}, None)


@overridable
def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Tell whether all elements are true."""
    return record(r.all_, (input,), {"axis": _axes(dim, input._array.ndim), "keepdims": keepdim}, None)


@overridable
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Compute log(sum(exp(x))) without overflow."""
    tensor = input.to(_dtypes.get_default_dtype()) if input._array.dtype.kind in "iub" else input
    axes = _axes(dim, tensor._array.ndim)
    return record(r.logsumexp, (tensor,), {"axis": axes, "keepdims": keepdim}, None, {"dim": _given(dim)})


@overridable
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Normalise exponentials along a dimension."""
    tensor = input if dtype is None else input.to(dtype)
    axis = _errors.wrap_dim(dim, tensor._array.ndim)
    if tensor._array.size:
        last = axis + 1 >= tensor._array.ndim
        refuse("softmax_lastdim" if last else "softmax", tensor._array.dtype)
    return record(r.softmax, (tensor,), {"axis": axis}, None, {"dim": dim})


@overridable
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Take the logarithm of softmax without underflow."""
    tensor = input if dtype is None else input.to(dtype)
    axis = _errors.wrap_dim(dim, tensor._array.ndim)
    if tensor._array.size:
        last = axis + 1 >= tensor._array.ndim
        refuse("log_softmax_lastdim" if last else "log_softmax", tensor._array.dtype)
    return record(r.log_softmax, (tensor,), {"axis": axis}, None, {"dim": dim})


@overridable
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Sum up along a dimension."""
    tensor = _widened(input, dtype)
    axis = _errors.wrap_dim(dim, tensor._array.ndim)
    return record(r.cumsum, (tensor,), {"axis": axis}, None, {"dim": dim})


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    if isinstance(dim, bool):
        return None, 1 if dim else 0
    if unbiased is not None:
        return dim, 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def _spread(primitive: Any, tensor: Any, dim: Any, correction: float, keepdim: bool, name: str) -> Any:
    if tensor._array.dtype.kind in "iub":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = _axes(dim, tensor._array.ndim)
    return record(primitive, (tensor,), {"axis": axes, "correction": correction, "keepdims": keepdim}, name)


@overridable
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Compute the variance."""
    dim, by = _correction(dim, unbiased, correction)
    return _spread(spread.var, input, dim, by, keepdim, "VarBackward0")


@overridable
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Compute the standard deviation."""
    dim, by = _correction(dim, unbiased, correction)
    return _spread(spread.std, input, dim, by, keepdim, "StdBackward0")


@overridable
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    """Compute a vector norm over dimensions."""
    if input._array.dtype.kind in "iub":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{_base.dtype_of(input)._scalar_name}"
        )
    order = 2 if p in ("fro", None) else p
    params = {"p": order, "axis": _axes(dim, input._array.ndim), "keepdims": keepdim}
    return record(spread.norm, (input,), params, "LinalgVectorNormBackward0")
