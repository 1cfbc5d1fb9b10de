"""Histograms, counts, and places among sorted boundaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _dtypes, _errors
from ..._core.arrays import LevelArray, is_meta, raw_leaf
from ..._core.primitive import vocabulary
from ..._dtypes import CPP_NAMES
from ..._modes import current_mode
from ..._ops import counting as s
from ..._ops.order import has_nan
from ..._warnings import warn_once
from ...overrides import overridable, takes_out
from .. import _base
from .._base import edge_of, wrap
from .._object.return_types import make
from .._recording.flat import EXACT
from .._recording.no_derivative import without_derivative
from .._recording.operands import plain_scalar
from .._recording.record import promoted, record
from .gathering import gather, refuse_kernel

INT64 = np.dtype(np.int64)
return_histogram = make("histogram", "hist", "bin_edges")
return_histogramdd = make("histogramdd", "hist", "bin_edges")


def _unfollowed(operation: str, results: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
    """Let backward say that torch has no derivative, where an input requires grad."""
    edges = tuple(edge_of(one) if one is not None else None for one in inputs)
    if current_mode().tracks and any(edge is not None for edge in edges):
        for result in results:
            if result._array.dtype.kind in "fV":
                result._edge = without_derivative(operation, edges)


def _checks_out(check: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function refuse what it is given as `out=`."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        function.check_out = check  # type: ignore[attr-defined]
        return function

    return declare


# ---- histograms ----
def _same_dtype(name: str, targets: Any, results: Any) -> None:
    for target, result, words in zip(targets, results, ("hist", "bin_edges"), strict=False):
        own, given = _base.dtype_of(target), _base.dtype_of(result)
        if own is not given:
            raise RuntimeError(
                f"torch.histogram: input tensor and {words} tensor should have the same dtype, but got input "
                f"{CPP_NAMES[given.name]} and {words} {CPP_NAMES[own.name]}"
            )


def _check_bins(bins: int, dim: int = 0) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


@takes_out
@_checks_out(_same_dtype)
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Count elements in bins of equal width between `min` and `max`; others are left out.

    Args:
        input: a tensor of floats
        bins: how many
        min: the lower end; if it equals `max`, both are taken from the data
        max: the upper end

    Example:
        >>> torch.histc(torch.tensor([0.0, 1.0, 1.5, 4.0]), bins=4, min=0, max=4)
        tensor([1., 2., 0., 1.])
    """
    low, high = [one.item() if isinstance(one, _base.Tensor) else one for one in (min, max)]
    _check_bins(bins)
    if input._array.dtype.kind == "c" and low == high:
        refuse_kernel("aminmax_cpu", input)
    _check_floats(input)
    return record(s.histc, (input,), {"bins": bins, "low": low, "high": high, "lead": 0})


def _check_points(input: Any, shape: Any, weight: Any) -> None:
    """Check what all histograms have in common; `shape` is that of the points."""
    if weight is not None:
        if tuple(weight._array.shape) != tuple(shape[:-1]):
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {_errors.sizes(shape)} and weight with "
                f"shape {_errors.sizes(weight._array.shape)}"
            )
        own, given = _base.dtype_of(input), _base.dtype_of(weight)
        if own is not given:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({CPP_NAMES[own.name]}), and weight({CPP_NAMES[given.name]})"
            )


def _check_edges(input: Any, edges: Any, dim: int) -> None:
    own, given = _base.dtype_of(input), _base.dtype_of(edges)
    if own is not given:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{CPP_NAMES[own.name]} and bins for dimension {dim} with dtype {CPP_NAMES[given.name]}"
        )
    if edges._array.ndim != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {edges._array.ndim} dimensions in the "
            f"bins tensor for dimension {dim}"
        )
    if not edges._array.size:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
            f"dimension {dim}"
        )


def _check_range(range: Any, dims: int) -> None:
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(range)}"
        )


def _check_floats(input: Any) -> None:
    kind = input._array.dtype.kind
    if kind in "biuc":
        refuse_kernel("linspace_cpu" if kind == "b" else "histogram_cpu", input)


def _check_extremes(input: Any) -> None:
    """Refuse dtypes of which torch does not find the range of a histogram itself."""
    if input._array.dtype.name not in ("float32", "float64"):
        refuse_kernel("histogramdd", input)


@takes_out
@_checks_out(_same_dtype)
def histogram(input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Count elements, or add up their weights, in bins given by their number or their edges."""
    edges = bins if isinstance(bins, _base.Tensor) else None
    if edges is not None and range is not None:
        raise TypeError("histogram(): bins are edges, so no range")
    points = (input._array.size, 1)
    _check_range(range, 1)
    if weight is not None and tuple(weight._array.shape) == tuple(input._array.shape):
        _check_points(input, (*weight._array.shape, 1), weight)
    else:
        _check_points(input, points, weight)
    if edges is not None:
        _check_edges(input, edges, 0)
    _check_bins(bins if edges is None else edges._array.size - 1)
    if edges is None and range is None:
        _check_extremes(input)
    _check_floats(input)
    inputs = [one for one in (input, edges, weight) if one is not None]
    params = {"bins": None if edges is not None else bins, "bounds": range, "density": density}
    results = record(s.histogram, inputs, {**params, "weighted": weight is not None, "lead": 0})
    _unfollowed("aten::histogram", results, tuple(inputs))
    return return_histogram(*results)


@overridable
def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Count points, the rows of the last dimension, in a grid of bins."""
    shape = tuple(input._array.shape)
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = shape[-1]
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    if bins and isinstance(bins[0], _base.Tensor):
        if len(bins) != dims:
            raise RuntimeError(
                f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got "
                f"{len(bins)}"
            )
    elif len(bins) != dims:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    _check_range(range, dims)
    _check_points(input, shape, weight)
    for dim, one in enumerate(bins):
        if isinstance(one, _base.Tensor):
            _check_edges(input, one, dim)
        _check_bins(one if isinstance(one, int) else one._array.size - 1, dim)
    if range is None and isinstance(bins[0] if bins else 1, int):
        _check_extremes(input)
    _check_floats(input)
    if isinstance(input._array, LevelArray):
        raise RuntimeError("vmap: histogramdd returns a list of tensors, which vmap does not support")
    return _histogramdd(input, bins, range, weight, density)


def _histogramdd(input: Any, bins: list[Any], range: Any, weight: Any, density: bool) -> Any:
    array = raw_leaf(input._array)
    points = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    edges = []
    for dim, one in enumerate(bins):
        if isinstance(one, _base.Tensor):
            edges.append(raw_leaf(one._array))
        else:
            bounds = None if range is None else (range[2 * dim], range[2 * dim + 1])
            low, high = s.bounds_of(points[:, dim], bounds, dim)
            edges.append(s.even_edges(np, low, high, one, array.dtype))
    weights = None if weight is None else raw_leaf(weight._array).reshape(-1)
    result = wrap(s.count_points(np, points, edges, weights, density))
    followed = [one for one in (input, *bins, weight) if isinstance(one, _base.Tensor)]
    _unfollowed("aten::_histogramdd_from_bin_cts", (result,), tuple(followed))
    return return_histogramdd(result, tuple(wrap(one) for one in edges))


@overridable
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each of 0, 1, 2, ... occurs, or sum their weights.

    Args:
        input: a 1-d tensor of integers that are not negative
        weights: a tensor of the same size
        minlength: the smallest size of the result

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2, 3]))
        tensor([1, 0, 2, 1])
    """
    array = input._array
    if (
        weights is None
        and type(array) is np.ndarray
        and array.dtype is INT64
        and array.ndim == 1
        and array.size
        and minlength >= 0
        and array[array.argmin()] >= 0
        and not current_mode().inference
    ):
        return wrap(np.bincount(array, None, minlength))
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if array.dtype.kind not in "iu":
        refuse_kernel("bincount_cpu", input)
    if array.ndim == 1 and not array.size:
        return wrap(np.zeros(minlength, np.int64))
    if array.ndim != 1 or raw_leaf(array).min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and tuple(weights._array.shape) != tuple(array.shape):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    inputs = (input,) if weights is None else (input, weights)
    result = record(s.bincount, inputs, {"minlength": minlength, "lead": 0})
    _unfollowed("aten::bincount", (result,), inputs)
    return result


# ---- places among sorted boundaries ----
def _index_dtype(name: str, targets: Any, results: Any) -> None:
    own, wanted = _base.dtype_of(targets[0]), _base.dtype_of(results[0])
    if own is not wanted:
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
            f"whether out_int32 flag is True, but we got output tensor's dtype {own._scalar_name} and out_int32 flag is "
            f"{wanted is _dtypes.int32}"
        )


def _warn_of_copies(values: Any, boundaries: Any, sorter: Any = None) -> None:
    for tensor, what in ((values, "input value"), (boundaries, "boundary"), (sorter, "sorter")):
        array = tensor._array if isinstance(tensor, _base.Tensor) else None
        if type(array) is np.ndarray and not array.flags.c_contiguous:
            warn_once(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra data "
                f"copy when converting non-contiguous tensor to contiguous, please use contiguous {what} tensor if "
                "possible. This message will only appear once per program."
            )


def _search(boundaries: Any, values: Any, right: bool, out_int32: bool) -> Any:
    if type(boundaries) in EXACT and type(values) in EXACT and not out_int32:
        edges, numbers = boundaries._array, values._array
        if (
            type(edges) is type(numbers) is np.ndarray
            and edges.ndim == 1
            and edges.size
            and (dtype := edges.dtype) is numbers.dtype
            and (dtype.kind in "iu" or (dtype.char in "fd" and not has_nan(edges)))
        ):
            return wrap(np.asarray(edges.searchsorted(numbers, "right" if right else "left")))
    given = [one._array if isinstance(one, _base.Tensor) else one for one in (boundaries, plain_scalar(values))]
    arrays, dtype = promoted(given)
    if dtype.kind in "bc" and np.size(given[1]):
        name = _dtypes.from_numpy(dtype)._scalar_name
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{name}'")
    if not hasattr(arrays[1], "shape"):
        arrays[1] = np.asarray(arrays[1], dtype)
    wanted = np.dtype(np.int32 if out_int32 else np.int64)
    return wrap(vocabulary.searchsorted(*arrays, right=right, dtype=wanted))


@takes_out
@_checks_out(_index_dtype)
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Return where values would have to be inserted into sorted sequences to keep them sorted.

    Args:
        sorted_sequence: sorted along its last dimension; 1-d, or with the first dimensions of `input`
        input: a tensor of values, or a number
        right: after equal elements instead of before them
        side: "left" or "right", the same in words
        sorter: indices that sort `sorted_sequence`
        out_int32: int32 instead of int64

    Example:
        >>> torch.searchsorted(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0.0, 3.0, 9.0]))
        tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"torch.searchsorted(): side and right can't be set to opposites, got side of {side} while right was True"
        )
    rows = sorted_sequence._array.shape
    if not rows:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    given = sorted_sequence
    if sorter is not None:
        sorted_sequence = _in_order(sorted_sequence, sorter)
    values = tuple(input._array.shape) if isinstance(input, _base.Tensor) else ()
    if len(rows) != 1:
        if not values:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
                f"got boundaries tensor dim({len(rows)}) and input value's dim(0) numel(1)"
            )
        if tuple(rows[:-1]) != values[:-1]:
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                "boundaries tensor and input value tensor must match, but we got boundaries tensor "
                f"{_errors.sizes(rows)} and input value tensor {_errors.sizes(values)}"
            )
    _warn_of_copies(input, given, sorter)
    return _search(sorted_sequence, input, right or side == "right", out_int32)


def _in_order(sequence: Any, sorter: Any) -> Any:
    """Sort rows by the indices that the caller gives."""
    if tuple(sorter._array.shape) != tuple(sequence._array.shape):
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{_errors.sizes(sequence._array.shape)}and got sorter tensor {_errors.sizes(sorter._array.shape)}"
        )
    if sorter._array.dtype != np.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{_base.dtype_of(sorter)._scalar_name}"
        )
    places = raw_leaf(sorter._array)
    if places.size and not is_meta(places) and (places.min() < 0 or places.max() >= places.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return gather(sequence.detach(), -1, sorter)


@takes_out
@_checks_out(_index_dtype)
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Return the number of the bucket of each element; sorted boundaries separate the buckets.

    Args:
        input: a tensor, or a number
        boundaries: a sorted 1-d tensor
        right: False: a boundary belongs to the bucket below; True: to the one above
        out_int32: int32 instead of int64

    Example:
        >>> torch.bucketize(torch.tensor([0.5, 3.0, 9.0]), torch.tensor([1.0, 3.0, 5.0]))
        tensor([0, 1, 3])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    _warn_of_copies(input, boundaries)
    return _search(boundaries, input, right, out_int32)
