"""Copies and pickles of tensors that keep what they share: tensors on one memory stay on one memory."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from . import _base
from ._base import LEAF, Storage
from ._layout import strides

NOT_A_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
    "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


def memory_of(tensor: Any) -> tuple[Any, int]:
    """Return the array that owns a tensor's memory, as a dense vector or matrix, and the tensor's offset in elements.

    A tensor on foreign memory, or on memory of another dtype, is its own owner, as a dense copy if need be.
    """
    array = tensor._array
    if not isinstance(array, np.ndarray):
        return np.asarray(raw_leaf(array)), 0
    root = array
    while root.base is not None and hasattr(root.base, "base"):  # as_strided puts an object between
        root = root.base
    owns = isinstance(root, np.ndarray) and root.dtype == array.dtype and root.flags.forc and root.size
    if not owns or root.base is not None or not array.size:
        return (array if array.flags.c_contiguous else np.ascontiguousarray(array)), 0
    distance = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return root, distance // array.itemsize


def steps_of(tensor: Any, owner: Any) -> tuple[int, ...]:
    """Return a tensor's strides on the memory that `memory_of` found."""
    array = tensor._array
    shares = isinstance(array, np.ndarray) and array.size and np.may_share_memory(array, owner)
    return strides(array) if shares else strides(np.empty(array.shape, bool))


def on_memory(owner: Any, offset: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Return the array of a shape and strides on a memory."""
    flat = owner.reshape(-1) if owner.flags.c_contiguous else owner.reshape(-1, order="F")
    step = [n * flat.itemsize for n in steps]
    return np.lib.stride_tricks.as_strided(flat[offset:] if flat.size else flat, shape, step)


def rebuild(
    cls: Any, owner: Any, offset: int, shape: Any, steps: Any, requires_grad: bool, attributes: dict[str, Any]
) -> Any:
    """Make a tensor on a memory: what a pickle calls."""
    result = object.__new__(cls)
    whole = tuple(owner.shape) == tuple(shape) and owner.flags.c_contiguous and steps == strides(owner)
    result._array = owner if whole else on_memory(owner, offset, tuple(shape), tuple(steps))
    result._storage = result._extra = None
    result._edge = LEAF if requires_grad else None
    result.__dict__.update(attributes)
    return result


def warn_of_hooks(tensor: Any) -> None:
    """Warn, as torch, of hooks that a file does not keep; nobody is told of a Parameter's."""
    if tensor._extra is not None and tensor._extra.hooks and not isinstance(tensor, _base.Parameter):
        import_module("retrograd.utils.hooks").warn_if_has_hooks(tensor)


def reduced(tensor: Any) -> Any:
    """Return what pickle keeps of a tensor: a leaf, whatever it was."""
    warn_of_hooks(tensor)
    owner, offset = memory_of(tensor)
    shape, steps = tuple(tensor._array.shape), steps_of(tensor, owner)
    return rebuild, (
        type(tensor),
        owner,
        offset,
        shape,
        steps,
        tensor._edge is not None,
        dict(tensor.__dict__),
    )


def deepcopy(tensor: Any, memo: dict[int, Any]) -> Any:
    """Copy a leaf; tensors that share memory share the memory of their copies. A Parameter's copy has no gradient yet."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if tensor._edge is not None and not tensor.is_leaf:
        raise RuntimeError(NOT_A_LEAF)
    _base.materialise(tensor)
    owner, offset = memory_of(tensor)
    steps = steps_of(tensor, owner)
    key: Any = ("memory", id(owner))
    found = memo.get(key)
    if found is None:
        found = (owner.copy(order="K"), Storage(), owner)  # the owner itself stays alive, so that its id stays its own
        memo[key] = found
    new, storage, _ = found
    result = rebuild(type(tensor), new, offset, tuple(tensor._array.shape), steps, tensor._edge is not None, {})
    result._storage = storage
    memo[id(tensor)] = result
    result.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    if not isinstance(tensor, _base.Parameter) and tensor._extra is not None and tensor._extra.grad is not None:
        result._need_extra().grad = copy.deepcopy(tensor._extra.grad, memo)
    return result
