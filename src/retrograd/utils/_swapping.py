"""torch.utils.swap_tensors: two tensors exchange what they are, and stay who they are."""

from __future__ import annotations

import copyreg
import gc
import weakref
from typing import Any, NoReturn

from .._graph.node import Node
from ..tensor._base import LEAF, wrap

POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a "
    "tensor that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not "
    "change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve "
    "this, please only change the device/dtype before running forward (or after both forward and backward)."
)


def _refuse(_: Any) -> NoReturn:
    raise RuntimeError(POISONED)


def _check(tensor: Any, name: str) -> set[str]:
    """Raise torch's errors for a tensor that others rely on; return its slots."""
    storage = tensor._storage
    known = [] if storage is None else [storage.owner, *(storage.views or ())]
    if any(all(one is not own for own in known) for one in weakref.getweakrefs(tensor)):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    views = sum(own() is not None and own() is not tensor for own in known[1:])
    if views and not tensor._is_view():
        raise RuntimeError(
            f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {1 + views} make sure you are not "
            "holding references to the tensor in other places."
        )
    return set(copyreg._slotnames(type(tensor)))  # type: ignore[attr-defined]


def _tell_storage(storage: Any, before: Any, now: Any) -> None:
    """Let a storage, which knows its tensors weakly, know that one is in another's place."""
    if storage is None:
        return
    if storage.owner is not None and storage.owner() is before:
        storage.owner = weakref.ref(now)
    if storage.views:
        storage.views = [weakref.ref(now) if one() is before else one for one in storage.views]


def _poison_graphs(leaf: Any) -> None:
    """Put in the leaf's place, in every graph that ends at it, one that raises when a gradient comes."""
    if leaf._edge is not LEAF:
        return
    stand_in: Any = None
    for edges in gc.get_referrers(leaf):
        for node in gc.get_referrers(edges) if type(edges) is tuple else ():
            if isinstance(node, Node) and node._edges is edges:
                if stand_in is None:
                    stand_in = wrap(leaf._array, LEAF)
                    extra = stand_in._need_extra()
                    extra.accumulator_pre_hooks, extra.hooked = {0: _refuse}, True
                node._edges = tuple([stand_in if edge is leaf else edge for edge in edges])


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange class, attributes, memory, gradient and history of two tensors; whoever holds one sees the other."""
    slots = _check(t1, "t1")
    if slots != _check(t2, "t2"):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        _poison_graphs(tensor)
        if tensor._extra is not None and tensor._extra.accumulator is not None:
            tensor._extra.accumulator = None  # it knows the tensor, not what the tensor is
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots:
        found = [(hasattr(tensor, slot), getattr(tensor, slot, None)) for tensor in (t2, t1)]
        for tensor, (is_set, value) in zip((t1, t2), found, strict=True):
            if is_set:
                setattr(tensor, slot, value)
            elif hasattr(tensor, slot):
                delattr(tensor, slot)
    if t1._storage is not t2._storage:
        _tell_storage(t1._storage, t2, t1)
        _tell_storage(t2._storage, t1, t2)
