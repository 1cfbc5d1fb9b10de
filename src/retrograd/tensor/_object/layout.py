"""Memory layout as torch describes it: strides in elements."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..._core.arrays import Batched, Dual, LevelArray, is_meta, owner_of_memory, raw_leaf
from ..._core.memory_order import dense_strides, output_order


def address(array: Any) -> int:
    """Return where the memory of a raw array begins; of a meta array, where it would."""
    if type(array) is np.ndarray or hasattr(array, "__array_interface__"):
        return int(array.__array_interface__["data"][0])
    return int(array.address if is_meta(array) else array.data.ptr)


def strides(array: Any) -> tuple[int, ...]:
    """Return torch's strides of an array: of a batch those of a sample, of a dual those of its primal."""
    raw = raw_leaf(array)
    if isinstance(raw, np.generic) or not raw.size:
        return dense_strides(array.shape)  # NumPy has no strides for empty arrays
    return tuple([n // raw.itemsize for n in raw.strides[raw.ndim - array.ndim :]])  # axes of batches come first


def is_contiguous(array: Any) -> bool:
    """Tell whether the elements of an array, or of each sample, lie in memory in their order and without gaps."""
    if not isinstance(array, LevelArray):
        return isinstance(array, np.generic) or bool(array.flags.c_contiguous)
    expected = 1
    for size, step in zip(reversed(array.shape), reversed(strides(array)), strict=True):
        if size == 0:
            return True
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def geometry(tensor: Any) -> tuple[tuple[int, ...], int]:
    """Return torch's strides and storage offset of a tensor."""
    array = tensor._array
    raw = raw_leaf(array)  # of a batch the first sample's
    if not isinstance(raw, np.ndarray):
        return strides(array), 0
    if (
        type(raw) is not np.ndarray and (offset := getattr(raw, "offset", None)) is not None
    ):  # of a wrapper, see `_dispatch/wrappers.py`
        return strides(array), offset
    if raw.size:
        whole = owner_of_memory(raw)
        if not isinstance(whole, np.ndarray):
            return strides(array), 0
        return strides(array), (address(raw) - address(whole)) // raw.itemsize
    view = None if tensor._extra is None else tensor._extra.view
    if view is None:
        return dense_strides(array.shape), 0
    # NumPy forgets where an empty array would be: follow the steps of the view.
    found, offset = geometry(view.base)
    shape = tuple(view.base._array.shape)
    for primitive, params in view.steps:
        shape, found, offset = _step(primitive, params, shape, found, offset)
    return found, offset


def _step(primitive: Any, params: dict[str, Any], shape: Any, steps: Any, offset: int) -> Any:
    """Return the shape, strides and offset of what a view shows of memory with these."""
    known = _STEPS.get(primitive.name)
    if known is not None:
        return known(shape, steps, offset, **params)
    # Ask the operation itself, by memory that lies so. Where the result is empty, NumPy may not say where it would begin.
    length = 1 + sum(max(size - 1, 0) * step for size, step in zip(shape, steps, strict=True))
    memory = np.empty(length, np.uint8)  # as bytes, an offset counts elements
    out = primitive.bind((np.ndarray(shape, np.uint8, memory, strides=steps),), params)
    return tuple(out.shape), tuple(out.strides), offset + address(out) - address(memory)


def expanded_strides(old: Any, steps: Any, shape: Any) -> tuple[int, ...]:
    """Return the strides of an expanded tensor: 0 where the size changes."""
    if not old:
        return (0,) * len(shape)
    lead = len(shape) - len(old)
    found = [0] * len(shape)
    sizes = [1] * lead + list(old)
    for k in range(len(shape) - 1, -1, -1):
        step = steps[k - lead] if k >= lead else sizes[k + 1] * found[k + 1]
        found[k] = step if sizes[k] == shape[k] else 0
        sizes[k] = shape[k]
    return tuple(found)


def _step_unsqueeze(shape: Any, steps: Any, offset: int, *, axis: int) -> Any:
    step = shape[axis] * steps[axis] if axis < len(shape) else 1
    return (*shape[:axis], 1, *shape[axis:]), (*steps[:axis], step, *steps[axis:]), offset


def _step_squeeze(shape: Any, steps: Any, offset: int, *, axis: Any) -> Any:
    kept = [k for k in range(len(shape)) if k not in axis]
    return tuple(shape[k] for k in kept), tuple(steps[k] for k in kept), offset


def _step_index(shape: Any, steps: Any, offset: int, *, index: Any) -> Any:
    new_shape, new_steps = [], []
    for k, (size, step) in enumerate(zip(shape, steps, strict=True)):
        part = index[k] if k < len(index) else slice(None)
        if isinstance(part, int):
            offset += part * step
            continue
        start, stop, by = part.indices(size)
        offset += start * step
        new_shape.append(max(0, -(-(stop - start) // by)))
        new_steps.append(step * by)
    return tuple(new_shape), tuple(new_steps), offset


def _step_diagonal(shape: Any, steps: Any, start: int, *, offset: int, axis1: int, axis2: int) -> Any:
    rows, columns = shape[axis1] + min(offset, 0), shape[axis2] - max(offset, 0)
    size = max(min(rows, columns), 0)
    if size:
        start += offset * steps[axis2] if offset >= 0 else -offset * steps[axis1]
    kept = [k for k in range(len(shape)) if k not in (axis1, axis2)]
    shape = (*(shape[k] for k in kept), size)
    return shape, (*(steps[k] for k in kept), steps[axis1] + steps[axis2]), start


def _step_unfold(shape: Any, steps: Any, offset: int, *, axis: int, size: int, step: int) -> Any:
    if not shape:
        return (size,), (1,), offset
    count = (shape[axis] - size) // step + 1
    found = (*steps[:axis], steps[axis] * step, *steps[axis + 1 :], steps[axis])
    return (*shape[:axis], count, *shape[axis + 1 :], size), found, offset


def _step_each_sample(shape: Any, found: Any, offset: int, *, axis: int, out_axis: int, steps: Any) -> Any:
    (size, *rest), (step, *others) = ((one[axis], *one[:axis], *one[axis + 1 :]) for one in (shape, found))
    inner = tuple(rest), tuple(others), offset
    for primitive, params in steps:
        inner = _step(primitive, params, *inner)
    shape, found, offset = inner
    return (*shape[:out_axis], size, *shape[out_axis:]), (*found[:out_axis], step, *found[out_axis:]), offset


_STEPS: dict[str, Any] = {
    **dict.fromkeys(("alias", "conj", "negative"), lambda shape, steps, offset: (shape, steps, offset)),
    "each_sample": _step_each_sample,
    "reshape": lambda old, steps, offset, shape: (shape, steps if shape == old else dense_strides(shape), offset),
    "permute_dims": lambda shape, steps, offset, axes: (
        *(tuple(one[a] for a in axes) for one in (shape, steps)),
        offset,
    ),
    "broadcast_to": lambda old, steps, offset, shape: (shape, expanded_strides(old, steps, shape), offset),
    "expand_dims": _step_unsqueeze,
    "squeeze": _step_squeeze,
    "getitem": _step_index,
    "diagonal": _step_diagonal,
    "unfold": _step_unfold,
    "restride": lambda shape, steps, at, size, stride, offset, start, **_: (size, stride, at + offset - start),
    "view_as_real": lambda shape, steps, offset: ((*shape, 2), (*(2 * n for n in steps), 1), 2 * offset),
    "view_as_complex": lambda shape, steps, offset: (shape[:-1], tuple(n // 2 for n in steps[:-1]), offset // 2),
}


# ---- overlaps, as torch finds them ----
OVERLAPPING = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
REPEATED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)


def laid_out_like(array: Any, like: Any) -> Any:
    """Give a new array the order of strides of another of the same shape."""
    if isinstance(array, LevelArray) or isinstance(like, LevelArray):
        return array if strides(array) == strides(like) else in_order(array, output_order(like.shape, [strides(like)]))
    if not isinstance(like, np.ndarray) or not isinstance(array, np.ndarray) or like.flags.c_contiguous:
        return array
    if repeats(like):
        return ordered(array, output_order(like.shape, [strides(like)]))
    out = np.empty_like(like, dtype=array.dtype, order="K", subok=False)
    out[...] = array
    return out


def ordered(array: Any, order: list[int]) -> Any:
    """Lay an array out so that its dimensions follow each other in `order`, innermost first."""
    if is_meta(array):
        return import_module("retrograd._core.meta_arrays").fresh(array.shape, array.dtype, order)
    outwards = order[::-1]
    dense = np.ascontiguousarray(array.transpose(outwards))
    return dense.transpose(np.argsort(outwards))


def in_order(array: Any, order: list[int]) -> Any:
    """Lay the parts of an array of any level out in an order of its dimensions, innermost first; batches are outermost."""
    if isinstance(array, Dual):
        tangent = None if array.tangent is None else in_order(array.tangent, order)
        return Dual(array.level, in_order(array.primal, order), tangent)
    if isinstance(array, Batched):
        return Batched(array.level, in_order(array.array, [*[k + 1 for k in order], 0]))
    return ordered(array, order) if isinstance(array, np.ndarray) else array


def packed(array: Any) -> Any:
    """Give the parts of an array of any level contiguous memory; one whose parts have it is returned itself."""
    if isinstance(array, Dual):
        primal, tangent = packed(array.primal), None if array.tangent is None else packed(array.tangent)
        same = primal is array.primal and tangent is array.tangent
        return array if same else Dual(array.level, primal, tangent)
    if isinstance(array, Batched):
        inner = packed(array.array)
        return array if inner is array.array else Batched(array.level, inner)
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array) if type(array) is np.ndarray else array.copy(order="C")


def is_dense(array: Any) -> bool:
    """Tell whether the elements of an array fill its memory without gaps and repetitions, in any order."""
    if array.flags.forc:
        return True
    expected = array.itemsize
    for step, size in sorted((s, n) for n, s in zip(array.shape, array.strides, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= size
    return True


def repeats(array: Any) -> bool:
    """Tell whether an array shows one element at several places: an expanded tensor."""
    return (
        isinstance(array, np.ndarray)
        and not array.flags.c_contiguous
        and array.size > 0
        and any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))
    )


def is_same_memory(one: Any, other: Any) -> bool:
    """Tell whether two arrays show the same elements in the same order."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return one is other
    first, second = address(one), address(other)
    return first == second and one.dtype == other.dtype and one.shape == other.shape and one.strides == other.strides


def refuse_repeats(array: Any) -> None:
    """Raise torch's error for a write into an expanded tensor."""
    if repeats(array):
        raise RuntimeError(REPEATED)


def refuse_overlap(target: Any, source: Any, same: bool = False) -> None:
    """Raise torch's error if a source shares memory with the target other than element by element.

    `same` refuses element by element too. Arrays with gaps are let through: torch does not look closer.
    """
    if not (isinstance(target, np.ndarray) and isinstance(source, np.ndarray)) or not target.size or not source.size:
        return
    if target is source:
        if same:
            raise RuntimeError(OVERLAPPING)
        return
    if (target.base is None and source.base is None) or not is_dense(target) or not is_dense(source):
        return
    first, second = address(target), address(source)
    if first == second and target.nbytes == source.nbytes:
        if same or strides(target) != strides(source):
            raise RuntimeError(OVERLAPPING)
    elif first < second + source.nbytes and second < first + target.nbytes:
        raise RuntimeError(OVERLAPPING)
