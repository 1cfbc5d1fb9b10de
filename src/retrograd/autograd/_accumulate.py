"""Leaves: how a gradient gets into `.grad`. See Note [Who owns a gradient]."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .. import _errors
from .._core.arrays import LevelArray
from .._core.primitive import vocabulary
from .._graph.large_backward import add_into
from .._graph.node import InputFacts
from .._modes import current_mode
from .._ops.shape import overwrite
from .._warnings import warn
from ..tensor import _base
from ..tensor._aliasing.views import wrote
from ..tensor._base import LEAF, wrap
from ..tensor._object.layout import is_dense
from ..tensor._recording.record import record

NDARRAY = np.ndarray


def accumulate_raw(leaf: Any, g: Any, mine: bool) -> None:
    """Add a raw gradient to `.grad` of a leaf without hooks; a first one is taken as it is if it is the engine's (`mine`)."""
    if leaf._edge is not LEAF:
        check_leaf(leaf)
        return
    with _accumulate_lock:  # another thread may have the same leaf
        extra = leaf._extra
        if extra is None or extra.narrow:
            extra = leaf._need_extra()
        held = extra.grad
        if held is None:
            if (
                mine
                and type(g) is NDARRAY
                and g.flags.carray  # dense, and writable: a number that was spread is not
                and leaf._array.flags.c_contiguous
                and (g.base is None or g.base.nbytes == g.nbytes)  # no more memory than is shown
            ):
                extra.grad = wrap(g)
                return
        elif held._edge is None and (storage := held._storage or _base.storage_of(held)) and not storage.inference:
            array = held._array
            kind = type(array)
            if kind is NDARRAY:
                if type(g) is NDARRAY and array.dtype is g.dtype and array.flags.c_contiguous and _is_plain(leaf):
                    try:
                        add_into(array, g)
                    except ValueError:  # the leaf got data of another shape since
                        raise _errors.broadcast_error(array.shape, g.shape) from None
                    storage.version += 1
                    return
            elif kind is type(g) and kind in (np.float32, np.float64):
                held._array = array + g  # nobody shares a value that has no memory yet
                storage.version += 1
                return
        accumulate_grad(leaf, g, False)


def _is_plain(leaf: Any) -> bool:
    """Tell whether a leaf's memory is ordered as its gradient's."""
    array = leaf._array
    return type(array) is not NDARRAY or array.flags.c_contiguous


def check_leaf(leaf: Any) -> None:
    """Raise torch's error for a tensor that was a leaf when it was used, and has a node now."""
    if leaf.requires_grad and not leaf.is_leaf:
        raise RuntimeError("leaf variable has been moved into the graph interior")


_accumulate_lock = threading.RLock()


def accumulate_grad(leaf: Any, g: Any, tensors: bool) -> None:
    """Add a gradient to a leaf's `.grad`, which never shares memory with anything else."""
    if tensors and (current_mode().dispatch_modes or type(g) in _base.dispatch_types):
        _base.dispatch_layer(".recording").accumulate(leaf, g)
        return
    with _accumulate_lock:
        extra = leaf._need_extra()
        held = extra.grad
        if held is None:
            extra.grad = _first_gradient(g if tensors else wrap(g), leaf._array)
        elif current_mode().grad or isinstance(held._array, LevelArray) or isinstance(g, LevelArray):
            extra.grad = held + (g if tensors else wrap(g))
            if isinstance(extra.grad._array, np.ndarray) and not extra.grad._array.flags.c_contiguous:
                check_layout(extra.grad, leaf)
        else:
            array = _base.materialise(held)
            added = g._array if tensors else g
            try:
                np.add(array, added, out=array, casting="unsafe")
            except ValueError:
                raise _errors.broadcast_error(array.shape, added.shape) from None
            wrote(held)  # raises for inference tensors; torch, too, has added by then
            if not array.flags.c_contiguous or not _is_plain(leaf):
                check_layout(held, leaf)


def check_layout(grad: Any, leaf: Any) -> None:
    """Warn, as torch, of a gradient whose memory is ordered differently from the leaf's."""
    pairs = zip(leaf.shape, grad.stride(), leaf.stride(), strict=True)
    if is_dense(leaf._array) and any(n != 1 and a != b for n, a, b in pairs):
        warn(
            "grad and param do not obey the gradient layout contract. This is not an error, but may impair "
            f"performance.\ngrad.sizes() = {list(grad.shape)}, strides() = {list(grad.stride())}\nparam.sizes() = "
            f"{list(leaf.shape)}, strides() = {list(leaf.stride())}"
        )


def _first_gradient(g: Any, leaf: Any) -> Any:
    """Copy a gradient for `.grad`, by torch's steps: new memory, ordered as a dense leaf's, then `copy_`."""
    array = copied(g._array)
    if type(array) is type(leaf) and isinstance(leaf, NDARRAY) and not leaf.flags.c_contiguous and is_dense(leaf):
        ordered = np.empty_like(leaf, array.dtype)
        ordered[...] = array
        array = ordered
    grad = wrap(array)
    storage = _base.storage_of(grad)
    storage.version = 1
    storage.inference = current_mode().inference
    if g._edge is not None and current_mode().grad:
        grad._edge = record(overwrite, (wrap(grad._array), g), {}, "CopyBackwards")._edge
    return grad


def in_leaf_dtypes(node: Any, grads: Any, inputs: Any) -> tuple[list[Any], Any]:
    """Bring gradients to the dtypes that the leaves at a node's edges have chosen for them (`Tensor.grad_dtype`).

    `inputs` are the facts by which the other gradients are fitted, or None; those of such leaves are adapted.
    """
    grads, inputs = list(grads), None if inputs is None else list(inputs)
    for i, (edge, g) in enumerate(zip(node._edges, grads, strict=False)):
        if g is None or type(edge) not in _base.leaf_types or edge._extra is None:
            continue
        wanted = edge._extra.grad_dtype
        if wanted is LEAF or (wanted is None and not hasattr(node, "_forward_cls")):
            continue  # of our rules only edges know the dtype; a custom Function returns one on purpose
        raw = g._array if isinstance(g, _base.Tensor) else g
        dtype = raw.dtype if wanted is None else wanted.numpy
        if inputs is not None:
            inputs[i] = InputFacts(inputs[i].shape, dtype, inputs[i].levels)
        elif raw.dtype != dtype:
            grads[i] = vocabulary.astype(g, dtype=dtype)
    return grads, inputs


def copied(array: Any) -> Any:
    """Copy a gradient into dense memory of its own; NumPy scalars are values already."""
    if isinstance(array, np.generic):
        return array
    if isinstance(array, np.ndarray):
        return np.array(array, order="C") if type(array) is np.ndarray else array.copy("C")
    return array if isinstance(array, LevelArray) else array.copy()
