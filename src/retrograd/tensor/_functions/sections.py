"""Splitting at positions, or into a number of sections of about the same size: views with nodes of their own."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.arrays import LevelArray
from ..._ops.index import getitem
from ...overrides import declared, overridable, overridable_as
from .. import _base
from .._aliasing.views import view_op


def _part(input: Any, d: int, start: int, stop: int) -> Any:
    shown = {"dim": d, "start": start, "end": stop, "step": 1}
    index = (*(slice(None),) * d, slice(start, stop)) if d else (slice(start, stop),)
    return view_op(input, getitem, {"index": index}, "SliceBackward0", shown)


def _sections(input: Any, d: int, sections: int) -> Any:
    size = input._array.shape[d]
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    step, longer = divmod(size, sections)
    parts, start = [], 0
    for k in range(sections):
        stop = start + step + (k < longer)
        parts.append(_part(input, d, start, stop))
        start = stop
    return tuple(parts)


def _at(input: Any, d: int, indices: Any) -> Any:
    size = input._array.shape[d]
    parts, start = [], 0
    for stop in (*indices, size):
        first, last, _ = slice(start, stop).indices(size)
        parts.append(_part(input, d, first, max(first, last)))
        start = stop
    return tuple(parts)


MOST_SECTIONS = 1 << 32  # as many tensors fit in no memory


@overridable
def tensor_split(
    input: Any,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> Any:
    """Cut a tensor along a dimension into parts of almost equal size, or at given indices, as views.

    Args:
        input: a tensor
        indices_or_sections: how many parts, or where to cut
        dim: the dimension

    Example:
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    given = indices_or_sections
    if given is None:
        given = next((one for one in (indices, sections, tensor_indices_or_sections) if one is not None), None)
    ndim = input._array.ndim
    if not ndim:
        raise RuntimeError(f"tensor_split expected at least a 1-dimensional tensor, but got a tensor with {ndim} dims")
    if isinstance(given, _base.Tensor):
        given = _numbers(given)
    d = dim if 0 <= dim < ndim else _errors.wrap_dim(dim, ndim)
    if isinstance(given, int) and given > MOST_SECTIONS:
        raise MemoryError(f"{given} tensors")
    return _sections(input, d, given) if isinstance(given, int) else _at(input, d, given)


def _numbers(given: Any) -> Any:
    if isinstance(given._array, LevelArray):
        raise RuntimeError("vmap: tensor_split with tensor indices depends on values; give numbers instead")
    if given._array.dtype != "int64":
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{_base.dtype_of(given)._scalar_name}"
        )
    if given._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {given._array.ndim} dims"
        )
    return given.tolist()


def _split_along(name: str, at_least: int, given_dim: int) -> Any:
    def function(input: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
        given = indices_or_sections
        if given is None:
            given = indices if indices is not None else sections
        if not isinstance(given, (int, tuple, list)) or isinstance(given, bool):
            raise TypeError(f"{name}(): neither a number of sections nor a list of indices")
        ndim = input._array.ndim
        if ndim < at_least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {at_least} dimension, but got a tensor with {ndim} "
                "dimensions!"
            )
        d = 0 if name == "hsplit" and ndim == 1 else given_dim
        size = input._array.shape[d]
        if isinstance(given, int) and (given == 0 or size % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {size} is not "
                f"divisible by the split_size {given}!"
            )
        return _sections(input, d, given) if isinstance(given, int) else _at(input, d, given)

    return overridable_as(name, function, f"Split along dimension {given_dim}, into equal sections or at indices.")


hsplit = declared(_split_along("hsplit", 1, 1), forms="function method spread")
vsplit = declared(_split_along("vsplit", 2, 0), forms="function method spread")
dsplit = declared(_split_along("dsplit", 3, 2), forms="function method spread")
