"""torch.utils.module_tracker: which modules run at the moment, forward or backward."""

from __future__ import annotations

import weakref
from typing import Any, Self

from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from ._pytree import tree_flatten


class ModuleTracker:
    """A block in which `parents` has the names of the modules that run, by the path to them, and "Global".

    `is_bw` tells whether backward runs. A module is named by the first way that led to it.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._known: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._backward = 0

    @property
    def is_bw(self) -> bool:
        """Tell whether backward runs."""
        from ..autograd._running import current_graph_task_id

        return bool(current_graph_task_id() != -1)

    def _name(self, module: Any) -> str:
        if module not in self._known:
            self._known[module] = type(module).__name__
        own = self._known[module]
        for name, child in module.named_children():
            self._known.setdefault(child, f"{own}.{name}")
        return own

    def _entering(self, name: str, is_backward: bool) -> Any:
        def enter(*_: Any) -> None:
            self.parents.add(name)

        return enter

    def _leaving(self, name: str) -> Any:
        def leave(*_: Any) -> None:
            self.parents.discard(name)

        return leave

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name(module)
        self._entering(name, False)()
        tensors = _watched(inputs)
        if tensors:  # backward leaves a module when the gradients of its inputs are there
            self._hooks.append(register_multi_grad_hook(tensors, self._leaving(name)))

    def _after(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._name(module)
        self._leaving(name)()
        tensors = _watched(outputs)
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, self._entering(name, True), mode="any"))

    def __enter__(self) -> Self:
        self._registered = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *exc: object) -> None:
        for one in (*self._registered, *self._hooks):
            one.remove()
        self._hooks.clear()
        self.parents.clear()
        self.parents.add("Global")


def _watched(values: Any) -> list[Any]:
    return [one for one in tree_flatten(values)[0] if isinstance(one, Tensor) and one.requires_grad]


__all__ = ["ModuleTracker"]
