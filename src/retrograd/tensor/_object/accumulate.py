"""AccumulateGrad: torch's face of a leaf's edge."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import ref

from ..._graph import node as _node
from ..._graph.node import Node


class AccumulateGrad(Node):
    """The node through which a leaf receives its gradient. See Note [Edges]."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self._edges = ()
        self.seq = (1 << 63) - 1
        self.code, self.lasti = None, 0
        self.meta = self.guard = self.extra = self._storage = None

    def register_hook(self, hook: Any) -> Any:
        from ...autograd.graph import RemovableHandle

        extra = self.variable._need_extra()
        extra.accumulator_hooks = OrderedDict() if extra.accumulator_hooks is None else extra.accumulator_hooks
        extra.hooked = True
        return RemovableHandle.add(extra.accumulator_hooks, hook)

    def register_prehook(self, hook: Any) -> Any:
        from ...autograd.graph import RemovableHandle

        extra = self.variable._need_extra()
        extra.accumulator_pre_hooks = (
            OrderedDict() if extra.accumulator_pre_hooks is None else extra.accumulator_pre_hooks
        )
        extra.hooked = True
        return RemovableHandle.add(extra.accumulator_pre_hooks, hook)

    def pull_back(self, g: Any, graph: bool) -> Any:
        from ...autograd._accumulate import accumulate_grad

        accumulate_grad(self.variable, g, graph)
        return ()


def accumulator_of(leaf: Any) -> AccumulateGrad:
    """Return the AccumulateGrad of a leaf: the same object as long as somebody holds it."""
    extra = leaf._need_extra()
    found = None if extra.accumulator is None else extra.accumulator()
    if found is None:
        found = AccumulateGrad(leaf)
        extra.accumulator = ref(found)
    return found


_node.install(accumulator_of=accumulator_of)
