"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

from ..._ops import variance
from ..._warnings import warn
from ...overrides import overridable, takes_out
from .._recording.kept_outputs import record_keeping_outputs
from .._recording.record import record
from .reduce import _axes


def _read(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    """Return the dims, and how many degrees of freedom are taken off; `var(x, False)` gives the second first."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        return dim, 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def _spread(name: str, tensor: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    array = tensor._array
    if array.dtype.kind in "iub":
        subject = name if name.endswith("_mean") else "std and var"
        raise RuntimeError(f"{subject} only support floating point and complex dtypes")
    if unbiased is not None or correction is not None or isinstance(dim, bool):
        dim, correction = _read(dim, unbiased, correction)
    else:
        correction = 1
    axes = _axes(dim, array.ndim)
    count = 1
    for a in axes:
        count *= array.shape[a]
    if correction >= count and (array.size or not count):
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
            "numel divided by output numel)."
        )
    params = {"axis": axes, "correction": correction, "keepdims": keepdim}
    primitive, node, shown = _KINDS[name]
    if shown is not None:
        return record_keeping_outputs(primitive, (tensor,), params, node, shown)
    return record(primitive, (tensor,), params, node)


_KINDS: dict[str, tuple[Any, str, Any]] = {
    "var": (variance.var, "VarBackward0", None),
    "std": (variance.std, "StdBackward0", None),
    "var_mean": (variance.var_mean, "VarMeanBackward0", ()),
    "std_mean": (variance.std_mean, "StdMeanBackward0", ("result0",)),
}


@takes_out
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Return the variance over dimensions.

    Args:
        input: a tensor of floats or complex numbers
        dim: a dimension or several; without it, all
        correction: what is subtracted from the number of elements; 1, the default, makes the estimate unbiased
        keepdim: keep these dimensions, with size 1

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0])
        >>> torch.var(x), torch.var(x, correction=0)
        (tensor(1.6667), tensor(1.2500))
    """
    return _spread("var", input, dim, unbiased, keepdim, correction)


@takes_out
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Return the standard deviation over dimensions, the root of `var`.

    Args:
        input: a tensor of floats or complex numbers
        dim: a dimension or several; without it, all
        correction: what is subtracted from the number of elements; 1 by default
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.std(torch.tensor([[1.0, 3.0], [2.0, 6.0]]), dim=1)
        tensor([1.4142, 2.8284])
    """
    return _spread("std", input, dim, unbiased, keepdim, correction)


@overridable
def var_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """Return the variance and the mean over dimensions.

    Args:
        input: a tensor of floats or complex numbers
        dim: a dimension or several; without it, all
        correction: what is subtracted from the number of elements; 1 by default
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return _spread("var_mean", input, dim, unbiased, keepdim, correction)


@overridable
def std_mean(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """Return the standard deviation and the mean over dimensions.

    Args:
        input: a tensor of floats or complex numbers
        dim: a dimension or several; without it, all
        correction: what is subtracted from the number of elements; 1 by default
        keepdim: keep these dimensions, with size 1

    Example:
        >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return _spread("std_mean", input, dim, unbiased, keepdim, correction)
