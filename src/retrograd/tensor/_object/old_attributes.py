"""Attributes of tensors that few programs read: hooks by their numbers, torch's private names, what was removed."""

from __future__ import annotations

from typing import Any

from ..._core.levels import UserLevel
from ..._graph.node import Node, Slot
from ..._warnings import warn
from .._aliasing.entering import base_of, entered
from .._base import NothingExtra


def slot_of(edge: Any) -> tuple[Any, int]:
    """Return the node of an edge, and which of its outputs the edge is."""
    return (edge.node, edge.index) if type(edge) is Slot else (edge, 0)


def _shown_base(self: Any) -> Any:
    """Return what a tensor views: to torch a dual of `forward_ad` views the tensor that it was made of, but in inference mode."""
    extra = self._extra
    if extra is None:
        return None
    base = self if extra.view is None else extra.view.base
    link = entered(base)
    while link is not None and isinstance(link.level, UserLevel) and not link.outer.is_inference():
        base = base_of(link.outer)
        link = entered(base)
    return None if base is self else base


def is_view(self: Any) -> bool:
    """Tell whether a tensor views another."""
    return self._extra is not None and _shown_base(self) is not None


def use_count(self: Any) -> int:
    """Count who holds a tensor as torch does: its views, nodes that have saved it, whose gradient it is, and Python once."""
    import gc

    array, own = self._array, slot_of(self._edge)[0]
    held = 1
    nodes: dict[Any, Any] = {}
    for one in gc.get_referrers(self):
        if isinstance(one, NothingExtra):
            held += (one.view is not None and one.view.base is self) + (one.grad is self)
        elif type(one) is tuple:
            nodes |= {id(node): node for node in gc.get_referrers(one) if isinstance(node, Node) and node._edges is one}
    held += bool(nodes)  # to torch they share one that collects the gradient
    for one in gc.get_referrers(array):
        if isinstance(one, Node) and one is not own:
            held += sum(getattr(one, name, None) is array for name in one.array_names)
    return held


def _refuse(words: str) -> Any:
    def delete(self: Any) -> None:
        raise RuntimeError(words)

    return delete


def _read_hooks(self: Any) -> Any:
    """Return the hooks on a tensor's gradient by their numbers, or None."""
    edge = self._edge
    if not isinstance(edge, (Node, Slot)):
        return None if self._extra is None else self._extra.hooks
    node, slot = slot_of(edge)
    known = None if node.extra is None else node.extra.tensor_hooks
    return None if known is None else known.get(slot)


def _set_hooks(self: Any, hooks: Any) -> None:
    edge = self._edge
    if not isinstance(edge, (Node, Slot)):
        extra = self._need_extra()
        extra.hooks, extra.hooked = hooks, extra.hooked or bool(hooks)
        return
    node, slot = slot_of(edge)
    of_node = node.need_extra()
    of_node.tensor_hooks = {} if of_node.tensor_hooks is None else of_node.tensor_hooks
    if hooks is None:
        of_node.tensor_hooks.pop(slot, None)
    else:
        of_node.tensor_hooks[slot] = hooks


def _read_volatile(self: Any) -> bool:
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _set_volatile(self: Any, value: Any) -> None:
    warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")


grad_fn = property(lambda self: self.grad_fn, None, _refuse("Deletion of _grad_fn not allowed. Detach tensor instead!"))
base = property(_shown_base)
grad = property(
    lambda self: self.grad, lambda self, value: setattr(self, "grad", value), lambda self: delattr(self, "grad")
)
backward_hooks = property(_read_hooks, _set_hooks, _refuse("Deletion of _backwards_hooks not allowed!"))
name = property(lambda self: None)  # which an older torch gave to variables
volatile = property(_read_volatile, _set_volatile)
