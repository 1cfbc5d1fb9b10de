"""Attributes of tensors that few programs read: hooks by their numbers, torch's private names, what was removed."""

from __future__ import annotations

from typing import Any

from .._graph.node import Node, Slot
from .._warnings import warn


def slot_of(edge: Any) -> tuple[Any, int]:
    """Return the node of an edge, and which of its outputs the edge is."""
    return (edge.node, edge.index) if type(edge) is Slot else (edge, 0)


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
backward_hooks = property(_read_hooks, _set_hooks, _refuse("Deletion of _backwards_hooks not allowed!"))
name = property(lambda self: None)  # which an older torch gave to variables
volatile = property(_read_volatile, _set_volatile)
