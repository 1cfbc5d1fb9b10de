"""Splitting a tensor into views, which come from one node, as torch's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ... import _errors
from ..._core.arrays import LevelArray, levels_of, raw_leaf
from ..._core.numpy_namespace import raw_namespace
from ..._core.passes import concatenate
from ..._core.primitive import namespace_of
from ..._core.shown import given
from ..._graph.node import InputFacts, Meta, Node, Slot
from ..._modes import PLAIN, Mode, current_mode, read_mode
from ..._ops import index as i
from ...overrides import overridable
from .. import _base
from .._aliasing.views import MULTIPLE, NO_GRAD, NOWHERE, View, forget_ended_level, register_view
from .._base import signed_types, stored

NDARRAY = np.ndarray
generic_straight = Node.straight


class Parts(NamedTuple):
    """Where the parts of a tensor are: made once for a shape, because loops split the same way again and again."""

    indices: list[tuple[Any, ...]]
    whole: list[tuple[Any, ...]]  # with an ellipsis, so that NumPy gives arrays
    steps: list[tuple[Any, Any]]  # as views keep them

    @classmethod
    def at(cls, indices: list[tuple[Any, ...]]) -> Parts:
        steps = [(i.getitem, {"index": index}) for index in indices]
        return cls(indices, [(*index, ...) for index in indices], steps)


@lru_cache(maxsize=1024)
def _slices(dim: int, lengths: tuple[int, ...]) -> Parts:
    """Return the parts of a dimension, by their lengths."""
    lead, start, parts = (slice(None),) * dim, 0, []
    for length in lengths:
        parts.append((*lead, slice(start, start + length)))
        start += length
    return Parts.at(parts)


@lru_cache(maxsize=1024)
def _positions(dim: int, size: int) -> Parts:
    """Return every position of a dimension."""
    lead = (slice(None),) * dim
    return Parts.at([(*lead, k) for k in range(size)])


def _split_views(input: Any, dim: int, lengths: Sequence[int], name: str, shown: dict[str, Any]) -> Any:
    """Make the views of a splitting function; they come from one node, as torch's."""
    return _many_views(input, _slices(dim, tuple(lengths)), name, shown)


def _many_views(input: Any, parts: Parts, name: str, shown: dict[str, Any], followed: bool = True) -> Any:
    """Make several views by one node; `followed`: autograd knows that they share memory."""
    mode, storage, array = read_mode() or current_mode(), input._storage, input._array
    if type(array) is not NDARRAY:
        array = _base.materialise(input)
        if isinstance(array, LevelArray):
            forget_ended_level(input)
            array = input._array
    node: Any = None
    if (edge := input._edge) is not None and (mode is PLAIN or mode.tracks):
        cls = _split_classes.get(name) or _split_node_class(name)
        node = cls().begin((input if edge is _base.LEAF else edge,))
        node.indices = parts.indices
        node.facts = array.shape, array.dtype
        node.num_outputs = len(parts.indices)
        node.shown = shown
        if type(array) is not NDARRAY and isinstance(array, LevelArray):
            levels = levels_of(array)
            node.meta = Meta((InputFacts(tuple(array.shape), array.dtype, levels),), levels, False)
    normal = not mode.inference and (storage is None or not storage.inference) and type(input) not in signed_types
    if followed and normal and type(array) is NDARRAY:
        return _raw_views(input, array, parts, node, mode)
    results = []
    for k, index in enumerate(parts.indices):
        result = _base.wrap(i.getitem.bind([array], {"index": index}), None if node is None else Slot(node, k))
        if followed:
            register_view(input, result, ((i.getitem, {"index": index}),), mode, True)
        if type(input) in signed_types:
            from .._aliasing.signs import carry

            carry(input, result, i.getitem.bind([stored(input)], {"index": index}))
        results.append(result)
    return tuple(results)


def _raw_views(input: Any, array: Any, parts: Parts, node: Any, mode: Mode) -> Any:
    """View a plain array at several indices; what `register_view` finds out for each is the same for all."""
    if (extra := input._extra) is None or (of := extra.view) is None:
        base, before, storage = input, None, input._storage
    else:
        base, before, storage = of.base, of.chain, of.base._storage
    if storage is None:
        storage = _base.storage_of(base)
    version, made_in = storage.version, MULTIPLE if mode.grad else NO_GRAD
    if (views := storage.views) is None:
        views = storage.views = []
    edge = None if node is not None or base._edge is None else NOWHERE
    new_tensor, new_object, append = _base.new_tensor, object.__new__, views.append
    results: list[Any] = []
    count = 0
    for index, step in zip(parts.whole, parts.steps):  # noqa: B905 - the keyword costs 100 ns
        result = new_tensor()
        result._array = array[index]
        if node is None:
            result._edge = edge
        else:  # constructors, which are Python calls, are written out
            result._edge = slot = new_object(Slot)
            slot.node = node
            slot.index = count
            slot._storage = storage  # so what saves a part at version 0 needs no guard
            count += 1
        result._storage = storage
        result._extra = view = new_object(View)
        view.base = base
        view.made_in = made_in
        view.version = version
        view.chain = (before, step)
        append(ref(result))
        results.append(result)
    if len(views) > storage.most_views:
        storage.forget_dead_views()
    return tuple(results)


def _put_together(self: Any, g: Any, graph: bool) -> Any:
    """Join the gradients of the parts; what no gradient came for is zero."""
    shape, dtype = self.facts
    axis = len(self.indices[0]) - 1
    if not graph and [*map(type, g)].count(NDARRAY) == len(g) and type(self.indices[0][axis]) is slice:
        return (concatenate(g, axis),)
    given = [k for k, part in enumerate(g) if part is not None]
    if len(given) == 1:
        at = given[0]
        return (namespace_of(g[at]).put_zeros(g[at], shape=shape, index=self.indices[at]),)
    single = isinstance(self.indices[0][axis], int)
    raw = raw_namespace(raw_leaf(getattr(g[given[0]], "_array", g[given[0]]))) if len(given) < len(g) else None
    parts = []
    for part, index in zip(g, self.indices, strict=True):
        if part is None:
            own = () if single else (index[axis].stop - index[axis].start,)
            part = raw.zeros(shape=(*shape[:axis], *own, *shape[axis + 1 :]), dtype=dtype)  # type: ignore[union-attr]
        parts.append(part)
    xp = namespace_of(*parts)
    return (xp.stack(*parts, axis=axis) if single else xp.concat(*parts, axis=axis),)


def _straight(self: Any, g: Any, freed: Any, mine: bool = False) -> Any:
    """Join the gradients of parts, all of which have one."""
    first = self.indices[0]
    if self.extra is None and self.meta is None and type(first[-1]) is slice:
        for part in g:
            if type(part) is not NDARRAY:
                break
        else:
            return ((self._edges[0], concatenate(g, len(first) - 1)),)
    return generic_straight(self, g, freed)


_split_classes: dict[str, Any] = {}
_SHOWN = {  # by how torch splits: what its nodes show, beside dim and, of parts that are ranges, the sizes
    "Split": "split_size",
    "UnsafeSplit": "split_size",
    "SplitWithSizes": "split_sizes",
    "UnsafeSplitWithSizes": "split_sizes",
}


def _split_node_class(name: str) -> Any:
    body: dict[str, Any] = {"__slots__": ("facts", "indices", "num_outputs", "shown"), "pull_back": _put_together}
    body["makes_gradients"] = True
    body["straight"] = _straight
    body["_saved_dim"] = property(given("dim"))
    if (own := _SHOWN.get(name.removesuffix("Backward0"))) is not None:
        body |= {f"_saved_{own}": property(given(own)), "_saved_self_sym_sizes": property(lambda node: node.facts[0])}
    made = _split_classes[name] = type(name, (Node,), body)
    return made


def _along(tensor: Any, dim: int, name: str) -> tuple[int, int]:
    """Return the dimension to split and its size."""
    shape = tensor._array.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    d = dim if 0 <= dim < len(shape) else _errors.wrap_dim(dim, len(shape))
    return d, shape[d]


def _lengths(size: int, step: int) -> list[int]:
    """Return the lengths of parts of one size, the last being what is left."""
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0:
        if size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return [0]
    whole, rest = divmod(size, step)
    return [step] * whole + ([rest] if rest or not whole else [])


def _checked_sizes(split_sizes: Any, d: int, size: int) -> list[int]:
    lengths = [int(n) for n in split_sizes]
    for n in lengths:
        if n < 0:
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={_errors.sizes(lengths)}"
            )
    if sum(lengths) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), "
            f"but got split_sizes={_errors.sizes(lengths)}"
        )
    return lengths


@overridable
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Cut a tensor along a dimension into views.

    Args:
        tensor: a tensor
        split_size_or_sections: the size of each part (the last may be smaller), or a list of all sizes
        dim: the dimension

    Example:
        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> [part.tolist() for part in torch.arange(5).split([1, 4])]
        [[0], [1, 2, 3, 4]]
    """
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    d, size = _along(tensor, dim, "split")
    lengths = _lengths(size, split_size_or_sections)
    shown = {"dim": dim, "split_size": split_size_or_sections}
    return _split_views(tensor, d, lengths, "SplitBackward0", shown)


@overridable
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Split into views of given sizes."""
    d, size = _along(input, dim, "split")
    lengths = _checked_sizes(split_sizes, d, size)
    return _split_views(input, d, lengths, "SplitWithSizesBackward0", {"dim": dim, "split_sizes": tuple(lengths)})


@lru_cache(maxsize=1024)
def _chunks(shape: tuple[int, ...], chunks: int, dim: int) -> tuple[Parts, str, dict[str, Any]]:
    """Return at most `chunks` parts of a shape, the name of their node, and what it shows."""
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = dim if 0 <= dim < len(shape) else _errors.wrap_dim(dim, len(shape))
    step = -(-shape[d] // chunks)
    if step == 0:
        lengths = (0,) * chunks
        return _slices(d, lengths), "SplitWithSizesBackward0", {"dim": dim, "split_sizes": lengths}
    return _slices(d, tuple(_lengths(shape[d], step))), "SplitBackward0", {"dim": dim, "split_size": step}


@overridable
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Cut a tensor along a dimension into views, as many as wanted or fewer.

    Args:
        input: a tensor
        chunks: how many
        dim: the dimension

    Example:
        >>> torch.chunk(torch.arange(6), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4, 5]))
    """
    return _many_views(input, *_chunks(tuple(input._array.shape), chunks, dim))


@overridable
def unbind(input: Any, dim: int = 0) -> Any:
    """Return all slices along a dimension, as views without it.

    Args:
        input: a tensor
        dim: the dimension

    Example:
        >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = dim if 0 <= dim < len(shape) else _errors.wrap_dim(dim, len(shape))
    return _many_views(input, _positions(d, shape[d]), "UnbindBackward0", {"dim": dim})


# ---- parts that share memory behind autograd's back ----
@overridable
def unsafe_split(input: Any, split_size: Any, dim: int = 0) -> Any:
    """Split without telling autograd that the parts share memory."""
    if not isinstance(split_size, int):
        return unsafe_split_with_sizes(input, split_size, dim)
    d, size = _along(input, dim, "split")
    shown = {"dim": dim, "split_size": split_size}
    return _many_views(input, _slices(d, tuple(_lengths(size, split_size))), "UnsafeSplitBackward0", shown, False)


@overridable
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Split into given sizes without telling autograd that the parts share memory."""
    d, size = _along(input, dim, "split")
    lengths = _checked_sizes(split_sizes, d, size)
    shown = {"dim": dim, "split_sizes": tuple(lengths)}
    return _many_views(input, _slices(d, tuple(lengths)), "UnsafeSplitWithSizesBackward0", shown, False)


@overridable
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Split into at most `chunks` parts without telling autograd that they share memory."""
    parts, name, shown = _chunks(tuple(input._array.shape), chunks, dim)
    return _many_views(input, parts, f"Unsafe{name}", shown, False)
