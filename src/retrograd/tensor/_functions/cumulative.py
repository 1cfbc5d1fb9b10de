"""Running sums, products, extremes and log-sums along one dimension."""

from __future__ import annotations

from typing import Any

from ... import _dtypes, _errors
from ..._dtypes import CPP_NAMES
from ..._ops import cumulative
from ...overrides import called, takes_out
from .. import _base
from .._aliasing import inplace as _inplace
from .._object.return_types import make, named
from .._recording.out_dtypes import computes_in_dtype_of_out, needs_dtype_of_result
from .._recording.record import record
from .._recording.refusals import kernel, refuse, refused

refused("cumsum_out", "cumprod_out", b=kernel("{name}_cpu"))
refused("cumsum", "cumprod", in_place=True, b=kernel("{name}_out_cpu"))
refused("logcumsumexp", bi=kernel("logcumsumexp_out_cpu"))
refused("cummax", "cummin", c=kernel("{name}_cpu"))
return_cummax, return_cummin = make("cummax", "values", "indices"), make("cummin", "values", "indices")


def _accumulated(name: str, primitive: Any, input: Any, dim: int, dtype: Any) -> Any:
    """Sum or multiply up; small integers become int64."""
    if dtype is not None:
        refuse(f"{name}_out", dtype.numpy)
        input = input.to(dtype)
    elif input._array.dtype.kind in "iub":
        input = input.to(_dtypes.int64)
    ndim = input._array.ndim
    axis = dim if 0 <= dim < ndim else _errors.wrap_dim(dim, ndim)
    return record(primitive, (input,), {"axis": axis}, None, {"dim": dim})


@takes_out(raised="cuda")
@computes_in_dtype_of_out
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Sum up along a dimension.

    Args:
        input: a tensor
        dim: the dimension
        dtype: convert to this dtype first

    Example:
        >>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([1., 3., 6.])
    """
    return _accumulated("cumsum", cumulative.cumsum, input, dim, dtype)


@takes_out(raised="cuda")
@computes_in_dtype_of_out
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Multiply up along a dimension.

    Args:
        input: a tensor
        dim: the dimension
        dtype: convert to this dtype first

    Example:
        >>> torch.cumprod(torch.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([1., 2., 6.])
    """
    return _accumulated("cumprod", cumulative.cumprod, input, dim, dtype)


def _in_place(name: str, function: Any) -> Any:
    """Make `cumsum_` or `cumprod_`: the tensor keeps its dtype."""
    write = _inplace.inplace(name, function)

    def method(self: Any, dim: int, *, dtype: Any = None) -> Any:
        own = _base.dtype_of(self)
        if dtype is not None and dtype is not own:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {CPP_NAMES[own.name]} and output tensor dtype "
                f"{CPP_NAMES[dtype.name]} should match"
            )
        return write(self, dim, dtype=own)

    return called(method, f"{name}_", f"Compute {name} in place.")


cumsum_, cumprod_ = _in_place("cumsum", cumsum), _in_place("cumprod", cumprod)


@takes_out
def logcumsumexp(input: Any, dim: int) -> Any:
    """Compute the log of the sums up to each element of exp(input), without overflow.

    Args:
        input: a tensor
        dim: the dimension

    Example:
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0, 0.0]), dim=0)
        tensor([0.0000, 0.6931, 1.0986])
    """
    axis = _errors.wrap_dim(dim, input._array.ndim)
    refuse("logcumsumexp", input._array.dtype)
    return record(cumulative.logcumsumexp, (input,), {"axis": axis}, None, {"dim": dim})


def _extreme(name: str, primitive: Any, input: Any, dim: int) -> Any:
    array = input._array
    if not array.ndim and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    axis = dim if 0 <= dim < array.ndim else _errors.wrap_dim(dim, array.ndim)
    if array.dtype.kind == "c" and array.ndim and array.size:
        refuse(name, array.dtype)
    return record(primitive, (input,), {"axis": axis}, None, {"dim": dim})


@takes_out
@needs_dtype_of_result
def cummax(input: Any, dim: int) -> Any:
    """Return the largest element so far along a dimension, and its index: of equals, the last.

    Args:
        input: a tensor
        dim: the dimension

    Example:
        >>> torch.cummax(torch.tensor([1.0, 3.0, 2.0]), dim=0).values
        tensor([1., 3., 3.])
    """
    return named(return_cummax, _extreme("cummax", cumulative.cummax, input, dim))


@takes_out
@needs_dtype_of_result
def cummin(input: Any, dim: int) -> Any:
    """Return the smallest element so far along a dimension, and its index: of equals, the last.

    Args:
        input: a tensor
        dim: the dimension

    Example:
        >>> torch.cummin(torch.tensor([3.0, 1.0, 2.0]), dim=0).values
        tensor([3., 1., 1.])
    """
    return named(return_cummin, _extreme("cummin", cumulative.cummin, input, dim))
