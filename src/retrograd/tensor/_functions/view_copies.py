"""Views as copies (`permute_copy`), and copies into which a part is written (`select_scatter`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _errors
from ..._graph.node import Node, Slot
from ..._modes import current_mode
from ..._ops import rearrange as r
from ..._ops import shape as s
from ...overrides import takes_out
from .._aliasing.views import NOWHERE, own_memory
from .._base import wrap
from .._object.layout import laid_out_like
from .._recording.record import mark_inference, record
from . import complex_views as _complex_views
from . import shape as _shaping
from . import splitting as _splitting
from . import strided as _striding

_copy_classes: dict[Any, Any] = {}


def copied(view: Any, name: str | None = None) -> Any:
    """Give a new view, or several, memory of its own; its node stays, under torch's name for it."""
    if isinstance(view, (tuple, list)):
        return tuple([copied(one) for one in view])
    edge = view._edge
    node = edge.node if type(edge) is Slot else edge
    if node is NOWHERE:
        edge = None
    elif isinstance(node, Node):
        _rename(node, name)
    result = wrap(own_memory(view._array), edge)
    mode = current_mode()
    if mode.inference:
        mark_inference(result)
    return result


def _rename(node: Any, name: str | None) -> None:
    cls = type(node)
    name = name or f"{cls.__name__}_copy"
    if cls.__name__.endswith("_copy"):  # another output of the same node
        return
    if name not in _copy_classes:
        _copy_classes[name] = type(name, (cls,), {"__slots__": ()})
    node.__class__ = _copy_classes[name]


def _slice(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """View a slice of a dimension."""
    return _shaping.basic_view(input, *_slice_index(input, dim, start, end, step))


def _slice_index(input: Any, dim: int, start: Any, end: Any, step: int) -> tuple[Any, str, dict[str, Any]]:
    ndim = input._array.ndim
    if not ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    d = _errors.wrap_dim(dim, ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end, step).indices(input._array.shape[d])
    index = (slice(None),) * d + (slice(first, max(first, last), step),)
    shown = {"dim": dim, "start": 0 if start is None else start, "end": (1 << 63) - 1 if end is None else end}
    return index, "SliceBackward0", {**shown, "step": step}


@takes_out(out_dtype="result")
def alias_copy(input: Any) -> Any:
    """View the whole tensor, as a copy."""
    return copied(_shaping.alias(input))


@takes_out
def as_strided_copy(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """View the storage with any sizes and strides, as a copy."""
    return copied(_striding.as_strided(input, size, stride, storage_offset))


@takes_out(out_dtype="result")
def detach_copy(input: Any) -> Any:
    """Leave the graph, as a copy."""
    return copied(input.detach())


@takes_out(out_dtype="result")
def diagonal_copy(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """View the diagonal of two dimensions, as a copy."""
    return copied(_shaping.diagonal(input, offset, dim1, dim2))


@takes_out(out_dtype="result")
def expand_copy(input: Any, size: Any, *, implicit: bool = False) -> Any:
    """Repeat along dimensions of size one, as a copy."""
    return copied(_shaping.expand(input, size))


@takes_out
def narrow_copy(input: Any, dim: int, start: Any, length: int) -> Any:
    """View some positions of a dimension, as a copy."""
    shape = input._array.shape
    if shape and dim >= len(shape):
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if shape and length < 0 and -len(shape) <= dim:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]}).")
    return copied(_shaping.narrow(input, dim, start, length), "NarrowCopyBackward0")


@takes_out
def permute_copy(input: Any, dims: Any) -> Any:
    """Reorder the dimensions, as a copy."""
    return copied(_shaping.permute(input, dims))


@takes_out
def select_copy(input: Any, dim: int, index: int) -> Any:
    """View one position of a dimension, as a copy."""
    return copied(_shaping.select(input, dim, index))


@takes_out(out_dtype="result")
def slice_copy(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """View a slice of a dimension, as a copy."""
    return copied(_slice(input, dim, start, end, step))


@takes_out
def split_copy(input: Any, split_size: int, dim: int = 0) -> Any:
    """Split into parts of a size, as a copy."""
    return copied(_splitting.split(input, split_size, dim))


@takes_out
def split_with_sizes_copy(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Split into parts of given sizes, as a copy."""
    return copied(_splitting.split_with_sizes(input, split_sizes, dim))


@takes_out(out_dtype="result")
def squeeze_copy(input: Any, dim: Any = None) -> Any:
    """Drop dimensions of size one, as a copy."""
    return copied(_shaping.squeeze(input, dim))


@takes_out(out_dtype="result")
def t_copy(input: Any) -> Any:
    """Transpose a matrix, as a copy."""
    return copied(_shaping.t(input))


@takes_out(out_dtype="result")
def transpose_copy(input: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions, as a copy."""
    return copied(_shaping.transpose(input, dim0, dim1))


@takes_out
def unbind_copy(input: Any, dim: int = 0) -> Any:
    """Return every position of a dimension, as a copy."""
    return copied(_splitting.unbind(input, dim))


@takes_out
def unfold_copy(input: Any, dimension: int, size: int, step: int) -> Any:
    """Return all windows of a size, as a copy."""
    return copied(_striding.unfold(input, dimension, size, step))


@takes_out(out_dtype="result")
def unsqueeze_copy(input: Any, dim: int) -> Any:
    """Insert a dimension of size one, as a copy."""
    return copied(_shaping.unsqueeze(input, dim))


@takes_out
def view_copy(input: Any, size: Any = None, *, dtype: Any = None) -> Any:
    """Give another shape or dtype, as a copy."""
    return copied(_shaping.view(input, size if dtype is None else dtype))


@takes_out
def view_as_real_copy(input: Any) -> Any:
    """Return the real and imaginary parts as a last dimension, as a copy."""
    return copied(_complex_views.view_as_real(input))


@takes_out
def view_as_complex_copy(input: Any) -> Any:
    """Read pairs of numbers as complex numbers, as a copy, which autograd does not follow."""
    if input._edge is not None and current_mode().tracks:
        raise RuntimeError(
            "view_as_complex_copy does not support automatic differentiation for outputs with complex dtype."
        )
    return copied(_complex_views.view_as_complex(input))


# ---- writing a part into a copy ----
def _written(
    input: Any, src: Any, view: str, params: dict[str, Any], size: Any, name: str, shown: dict[str, Any]
) -> Any:
    """Return a copy of `input` in which the part that a view shows is `src`."""
    have, wanted = tuple(src._array.shape), tuple(size)
    if have != wanted:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {_errors.sizes(have)}, slice size = "
            f"{_errors.sizes(wanted)}"
        )
    run_on = None
    if src._array.dtype != input._array.dtype:
        run_on = (input._array, s.astype(src._array, dtype=input._array.dtype))
    result = record(r.write_part, (input, src), {"view": view, "params": params}, name, shown, run_on)
    if isinstance(input._array, np.ndarray):
        result._array = laid_out_like(result._array, input._array)
    return result


@takes_out
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """Copy a tensor with another written at one position of a dimension."""
    shape = tuple(input._array.shape)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = _errors.wrap_dim(dim, len(shape))
    if not -shape[d] <= index < shape[d]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {_errors.sizes(shape)} at dimension {d}"
        )
    at = (slice(None),) * d + (index % shape[d],)
    shown = {"dim": dim, "index": index}
    return _written(input, src, "getitem", {"index": at}, shape[:d] + shape[d + 1 :], "SelectScatterBackward0", shown)


@takes_out(out_dtype="result")
def slice_scatter(input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """Copy a tensor with another written into a slice of a dimension."""
    index, _, _ = _slice_index(input, dim, start, end, step)
    size = list(input._array.shape)
    part = index[-1]
    size[len(index) - 1] = len(range(part.start, part.stop, part.step))
    shown = {"dim": dim, "start": start, "end": end, "step": step}
    return _written(input, src, "getitem", {"index": index}, size, "SliceScatterBackward0", shown)


@takes_out
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Copy a tensor with another written on a diagonal."""
    shape = input._array.shape
    a, b = _errors.wrap_dim(dim1, len(shape)), _errors.wrap_dim(dim2, len(shape))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = max(min(shape[a] + min(offset, 0), shape[b] - max(offset, 0)), 0)
    size = (*[n for k, n in enumerate(shape) if k not in (a, b)], length)
    params = {"offset": offset, "axis1": a, "axis2": b}
    shown = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return _written(input, src, "diagonal", params, size, "DiagonalScatterBackward0", shown)


@takes_out
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Copy a tensor with another written at sizes and strides of its storage."""
    place = _striding.place_of(input)
    size, stride, offset = _striding.checked(input, size, stride, storage_offset, place[1])
    params = _striding.row_params(input, place, size, stride, offset)
    shown = {"size": size, "stride": stride, "storage_offset": storage_offset}
    return _written(input, src, "restride", params, size, "AsStridedScatterBackward0", shown)
