"""Splitting a tensor into views, which come from one node, as torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _errors
from .._core.arrays import LevelArray, levels_of
from .._core.levels import creation_numbers
from .._core.primitive import namespace_of
from .._graph.node import InputFacts, Meta, Node, Slot
from .._graph.saved_names import SAVED_NAMES
from .._modes import current_mode
from .._ops import index as i
from ..overrides import overridable
from . import _base
from ._views import register_view


def _split_views(input: Any, dim: int, lengths: Sequence[int], name: str, shown: dict[str, Any]) -> Any:
    """Make the views of a splitting function; they come from one node, as torch's."""
    parts, start = [], 0
    for length in lengths:
        index = (slice(None),) * dim + (slice(start, start + length),)
        parts.append(index)
        start += length
    return _many_views(input, parts, name, shown)


def _many_views(input: Any, indices: list[tuple[Any, ...]], name: str, shown: dict[str, Any]) -> Any:
    array = _base.materialise(input)
    mode = current_mode()
    node: Any = None
    if mode.tracks and input._edge is not None:
        node = _split_node_class(name)()
        node._edges = (_base.edge_of(input),)
        node.indices, node.facts = indices, (tuple(array.shape), array.dtype)
        node.num_outputs, node.shown = len(indices), shown
        node.seq = creation_numbers()
        node.guard = node.extra = node.meta = node._storage = None
        node.record_place()
        if isinstance(array, LevelArray):
            levels = levels_of(array)
            node.meta = Meta((InputFacts(tuple(array.shape), array.dtype, levels),), levels, False)
    results = []
    for k, index in enumerate(indices):
        part = _base.wrap(i.getitem.bind([array], {"index": index}), None if node is None else Slot(node, k))
        register_view(input, part, ((i.getitem, {"index": index}),), mode, True)
        results.append(part)
    return tuple(results)


_split_classes: dict[str, Any] = {}


def _split_node_class(name: str) -> Any:
    if name not in _split_classes:

        def pull_back(self: Any, g: Any, graph: bool) -> Any:
            total = None
            for part, index in zip(g, self.indices, strict=True):
                if part is not None:
                    placed = namespace_of(part).put_zeros(part, shape=self.facts[0], index=index)
                    total = placed if total is None else total + placed
            return (total,)

        body: dict[str, Any] = {"__slots__": ("facts", "indices", "num_outputs", "shown"), "pull_back": pull_back}
        body |= {f"_saved_{key}": property(read) for key, read in SAVED_NAMES[name].items()}
        _split_classes[name] = type(name, (Node,), body)
    return _split_classes[name]


@overridable
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Split into views of a size, or of given sizes."""
    d = _errors.wrap_dim(dim, tensor._array.ndim)
    if not tensor._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size = tensor._array.shape[d]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if step < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
        if step == 0:
            if size:
                raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
            lengths = [0]
        else:
            lengths = [min(step, size - at) for at in range(0, size, step)] or [0]
        return _split_views(tensor, d, lengths, "SplitBackward0", {"dim": dim, "split_size": step})
    lengths = [int(n) for n in split_size_or_sections]
    if sum(lengths) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), "
            f"but got split_sizes={_errors.sizes(lengths)}"
        )
    shown = {"dim": dim, "split_sizes": tuple(lengths)}
    return _split_views(tensor, d, lengths, "SplitWithSizesBackward0", shown)


@overridable
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Split into at most `chunks` views of equal size."""
    if not input._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = _errors.wrap_dim(dim, input._array.ndim)
    size = input._array.shape[d]
    step = -(-size // chunks)
    if step == 0:
        shown: dict[str, Any] = {"dim": dim, "split_sizes": (0,) * chunks}
        return _split_views(input, d, [0] * chunks, "SplitWithSizesBackward0", shown)
    lengths = [min(step, size - at) for at in range(0, size, step)]
    return _split_views(input, d, lengths, "SplitBackward0", {"dim": dim, "split_size": step})


@overridable
def unbind(input: Any, dim: int = 0) -> Any:
    """Return a view of every position of a dimension."""
    if not input._array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = _errors.wrap_dim(dim, input._array.ndim)
    indices = [(slice(None),) * d + (k,) for k in range(input._array.shape[d])]
    return _many_views(input, indices, "UnbindBackward0", {"dim": dim})
