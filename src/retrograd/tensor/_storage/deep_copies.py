"""The memory under tensors, and copies of tensors that keep what they share: tensors on one memory stay on one memory."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import numpy as np

from ... import _errors
from ..._core.arrays import is_meta, owner_of_memory, raw_leaf
from ..._core.numpy_namespace import raw_namespace
from ..._modes import current_mode
from ..._ops.strided import last_place
from ..._stored import as_storage_only
from .. import _base
from .._aliasing.entering import memory_under
from .._base import LEAF, Storage, mark_born
from .._object.layout import address, strides

NOT_A_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
    "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage"
)


def memory_of(tensor: Any) -> tuple[Any, int]:
    """Return the array that owns a tensor's memory, dense but of any shape and dtype, and the tensor's offset in elements.

    A tensor on memory that is not dense is its own owner, as a dense copy if need be.
    """
    array = memory_under(tensor)
    raw = raw_leaf(array)
    if raw is not array or isinstance(raw, np.generic):
        return np.asarray(raw), 0
    if hasattr(array, "place"):  # of a wrapper, which has none
        return array, 0
    root = owner_of_memory(array)
    if hasattr(root, "flags") and root.flags.forc and root.size and array.size:
        offset, rest = divmod(address(array) - address(root), array.itemsize)
        if not rest:
            return root, offset
    return (array if array.flags.c_contiguous else array.copy(order="C")), 0


def steps_of(tensor: Any, owner: Any) -> tuple[int, ...]:
    """Return a tensor's strides on the memory that `memory_of` found."""
    array = tensor._array
    alike = isinstance(array, np.ndarray) == isinstance(owner, np.ndarray)
    shares = alike and array.size and 0 <= address(array) - address(owner) < int(owner.nbytes)
    return strides(array) if shares else strides(np.empty(array.shape, bool))


def row_of(owner: Any, dtype: Any) -> Any:
    """View a dense memory as a row of elements of a dtype; bytes that make no whole element are left out."""
    flat = owner.reshape(-1) if owner.flags.c_contiguous else owner.reshape(-1, order="F")
    if flat.dtype == dtype:
        return flat
    bytes_ = flat.view(np.uint8)
    return bytes_[: bytes_.size // dtype.itemsize * dtype.itemsize].view(dtype)


def need_inside(size: Any, steps: Any, offset: int, itemsize: int, nbytes: int) -> None:
    """Refuse sizes and strides that reach outside of a memory: a file or a program may ask for any."""
    if len(size) != len(steps):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(steps)})")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in size) or any(n < 0 for n in steps):
        what = f"sizes={_errors.sizes(size)} and strides={_errors.sizes(steps)}"
        raise RuntimeError(f"Storage size calculation overflowed with {what}")
    last = last_place(size, steps)
    if last >= 0 and (needed := (offset + last + 1) * itemsize) > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {_errors.sizes(size)}, strides {_errors.sizes(steps)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )


def on_memory(owner: Any, offset: int, shape: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Any:
    """Return the array of a shape, strides and dtype on a memory, which has room for it."""
    flat = row_of(owner, dtype)
    step = tuple([n * flat.itemsize for n in steps])
    return raw_namespace(flat).restrided(flat, shape, step, offset * flat.itemsize if flat.size else 0)


def rebuild(
    cls: Any,
    owner: Any,
    offset: int,
    shape: Any,
    steps: Any,
    requires_grad: bool,
    attributes: dict[str, Any],
    dtype: Any = None,
) -> Any:
    """Make a tensor on a memory."""
    dtype = owner.dtype if dtype is None else dtype
    result = object.__new__(cls)
    whole = tuple(owner.shape) == tuple(shape) and owner.flags.c_contiguous and tuple(steps) == strides(owner)
    if not whole or owner.dtype != dtype:
        owner = on_memory(owner, offset, tuple(shape), tuple(steps), dtype)
    result._array = as_storage_only(owner)
    result._storage = result._extra = None
    result._edge = LEAF if requires_grad else None
    if current_mode().transforms:
        mark_born(result)
    result.__dict__.update(attributes)
    return result


def warn_of_hooks(tensor: Any) -> None:
    """Warn, as torch, of hooks that a file does not keep; a Parameter's are dropped silently."""
    if tensor._extra is not None and tensor._extra.hooks and not isinstance(tensor, _base.Parameter):
        import_module("retrograd.utils.hooks").warn_if_has_hooks(tensor)


def as_array(tensor: Any) -> Any:
    """Return what a pickle between processes keeps of a tensor: a leaf, whatever it was, and its memory as an array."""
    warn_of_hooks(tensor)
    if type(tensor) in _base.signed_types:
        tensor = tensor.detach().clone()  # another process gets the values
    owner, offset = memory_of(tensor)
    shape, steps = tuple(tensor._array.shape), steps_of(tensor, owner)
    attributes, dtype = dict(tensor.__dict__), tensor._array.dtype
    return rebuild, (type(tensor), owner, offset, shape, steps, tensor._edge is not None, attributes, dtype)


def deepcopy(tensor: Any, memo: dict[int, Any]) -> Any:
    """Copy a leaf; tensors that share memory share the memory of their copies. A Parameter's copy has no gradient yet."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if tensor._edge is not None and not tensor.is_leaf:
        raise RuntimeError(NOT_A_LEAF)
    if type(tensor) in _base.signed_types or hasattr(tensor._array, "place"):
        return _copied_by_clone(tensor, memo)
    _base.materialise(tensor)
    owner, offset = memory_of(tensor)
    steps = steps_of(tensor, owner)
    key: Any = ("memory", id(owner))
    found = memo.get(key)
    if found is None:
        # The owner itself stays alive, so that its id stays its own.
        found = (_plain(owner).copy(order="K"), Storage(), owner)
        memo[key] = found
    new, storage, _ = found
    shape, requires_grad, dtype = tuple(tensor._array.shape), tensor._edge is not None, tensor._array.dtype
    result = rebuild(type(tensor), new, offset, shape, steps, requires_grad, {}, dtype)
    result._storage = storage
    memo[id(tensor)] = result
    result.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    if not isinstance(tensor, _base.Parameter) and tensor._extra is not None and tensor._extra.grad is not None:
        result._need_extra().grad = copy.deepcopy(tensor._extra.grad, memo)
    return result


def _copied_by_clone(tensor: Any, memo: dict[int, Any]) -> Any:
    """Copy a tensor that has no memory of its own: a wrapper, or one whose values are others than its memory's."""
    result = tensor.detach().clone()
    if type(tensor) in _base.dispatch_types and type(result) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either properly "
            "implement clone() for your subclass or override __deepcopy__() if it is intended behavior for clone() to return an "
            "instance of a different type."
        )
    memo[id(tensor)] = result.requires_grad_(tensor._edge is not None)
    result.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    if tensor._extra is not None and tensor._extra.grad is not None:
        result._need_extra().grad = copy.deepcopy(tensor._extra.grad, memo)
    return result


def _plain(owner: Any) -> Any:
    """Return a memory as an ordinary array, which one mapped from a file is not."""
    return np.asarray(owner) if isinstance(owner, np.ndarray) and not is_meta(owner) else owner
