"""Saved values in the hands of users' hooks: how they are handed over, and what may come back instead of them.

A hook may unpack a tensor of another dtype or another shape than was packed. torch computes with it, and brings the gradients
to the inputs' dtypes and shapes afterwards, where that can be done: so do we, for nodes with packed values only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _errors
from .._core.numpy_namespace import ARRAY
from .._core.primitive import vocabulary
from .._modes import using
from .guards import Freed, Guard, Packed

_TWO_SHAPES = re.compile(r"shapes? (\([\d, ]*\)).*?(\([\d, ]*\))")


def check_hooks(call: str, pack: Any, unpack: Any, owner: str = "", shown: str = "") -> None:
    """Refuse hooks that cannot be called, in the words with which torch's binding does."""
    if not (callable(pack) and callable(unpack)):
        kind = "collections.abc.Callable"
        raise TypeError(
            f"{call}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. ({owner}arg0: {kind}, arg1: {kind}) -> None\n\nInvoked with: {shown}{pack!r}, {unpack!r}"
        )


def pack_value(tensor: Any, pack: Any, unpack: Any) -> Packed:
    """Give a tensor to a pack hook, which must leave it as it is."""
    before = tensor._version
    with using(grad=False, saved_hooks=()):
        value = pack(tensor)
    if tensor._version != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects."
        )
    return Packed(value, unpack, tensor)


class SavedTensor:
    """torch's `_raw_saved_*`: a saved value on which hooks can be registered."""

    _node: Any
    _name: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, node: Any, name: Any) -> Any:
        """Return what shows one of the values that a node has saved."""
        self = object.__new__(cls)
        self._node, self._name = node, name
        return self

    def _packed(self) -> Any:
        guard = self._node.guard
        return guard.packed.get(self._name) if type(guard) is Guard else None

    def unpack(self) -> Any:
        """Return the saved value as a tensor."""
        return self._node.saved_tensor(self._name)

    @property
    def data(self) -> Any:
        """What the pack hook returned, or the saved value; of a node's own result without its history."""
        packed = self._packed()
        if packed is not None:
            return packed.value
        found = self.unpack()
        return found.detach() if self._name == "out" and hasattr(found, "detach") else found

    @property
    def unpack_hook(self) -> Any:
        packed = self._packed()
        return None if packed is None else packed.unpack

    def register_hooks(self, pack: Any = None, unpack: Any = None) -> None:
        """Hand the saved value to `pack` now and to `unpack` when it is read."""
        check_hooks("register_hooks", pack, unpack, "self: torch._C._autograd.SavedTensor, ", f"{self!r}, ")
        refused = "Calling register_hooks on a saved tensor"
        guard = self._node.guard
        if type(guard) is Freed:
            again = str(_errors.freed(guard.place)).split("freed). ", 1)[1]
            raise RuntimeError(f"{refused} after it has been freed. {again}")
        if guard is not None and self._name in guard.packed:
            raise RuntimeError(
                f"{refused} whose hooks have already been set. Hint: only one pair of hooks is allowed at a time."
            )
        tensor = self._node.saved_tensor(self._name)
        if tensor is None:
            raise RuntimeError(f"{refused} with value None is forbidden")
        if guard is None:
            guard = self._node.guard = Guard()
        guard.packed[self._name] = pack_value(tensor, pack, unpack)


def output_edge(node: Any) -> Any:
    """Return where a node's output stands in the graph: at the node, or where the view of a written base does."""
    return node if node.extra is None or node.extra.stands is None else node.extra.stands


def unpacked(packed: Packed, follows: bool) -> Any:
    """Let the hook give a tensor back; `follows`: a gradient flows through it."""
    tensor = packed.unpack(packed.value)
    if not hasattr(tensor, "_array"):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    if follows and tensor._array.dtype.kind in "biu":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor


def indices_given_back(given: tuple[Any, ...], node: Any, layout: Any) -> tuple[tuple[Any, ...], Any]:
    """Turn indices that hooks gave back into index arrays, and lay these out: a mask need not be one any more."""
    parts = [_positions(one) for one in given]
    if sum(map(len, parts)) != sum(one is ARRAY for one in layout):
        left = iter(parts)
        places = [(slice(None),) if one is None else (ARRAY,) * len(next(left)) for one in node.shown["indices"]]
        layout = tuple(place for some in places for place in some)
    return tuple(part for some in parts for part in some), layout


def _positions(index: Any) -> tuple[Any, ...]:
    """Turn a mask into index arrays."""
    if index._array.dtype.kind not in "biu":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if isinstance(index._array, np.ndarray) and index._array.dtype.kind == "b":
        return tuple(index.nonzero(as_tuple=True))
    return (index,)


@contextmanager
def computing_with_unpacked(node: Any) -> Iterator[None]:
    """Say in torch's way that a node's rules cannot compute with what hooks gave back."""
    try:
        yield
    except ValueError as error:
        shapes = _TWO_SHAPES.search(str(error))
        if shapes is not None and "broadcast" in str(error):
            first, second = (tuple(map(int, re.findall(r"\d+", one))) for one in shapes.groups())
            raise _errors.broadcast_error(first, second) from None
        raise RuntimeError(
            f"Function {node.name()} cannot use what the unpack hooks returned: {error}\nHint: an unpack hook must return "
            "a tensor of the shape that was packed."
        ) from error


def settled(node: Any, g: Any, grads: Any) -> list[Any]:
    """Check the gradients that a node made of unpacked values, and bring them to its inputs' dtypes."""
    return [_settled(node, g, grad, i) for i, grad in enumerate(grads)]


def _settled(node: Any, g: Any, grad: Any, at: int) -> Any:
    if grad is None:
        return None
    facts = None if node.meta is None else node.meta.inputs[at]
    if facts is None:  # without facts, inputs have the dtype of the output
        arrived = next(part for part in (g if type(g) is tuple else (g,)) if part is not None)
        dtype = raw(arrived).dtype
        return grad if raw(grad).dtype == dtype else vocabulary.astype(grad, dtype=dtype)
    shape = tuple(grad.shape)
    if shape != facts.shape and not sums_to(shape, facts.shape):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {at} - got {_errors.sizes(shape)} but expected "
            f"shape compatible with {_errors.sizes(facts.shape)}"
        )
    return grad  # the edge does the rest


def raw(value: Any) -> Any:
    return getattr(value, "_array", value)


def sums_to(wide: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Tell whether a shape could have been expanded to a wider one."""
    if len(shape) > len(wide):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(wide), strict=False))
