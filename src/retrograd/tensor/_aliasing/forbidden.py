"""Views whose place in the graph is lost. See Note [Views and in-place]."""

from __future__ import annotations

from typing import Any

from ..._graph.node import Slot
from .. import _base
from .._tensor import Tensor
from .views import _edge_slot, refusal


class ForbiddenView(Tensor):
    """A view that autograd does not follow and whose base was written: it can be read, but not recorded.

    A tensor becomes one by assignment to `__class__`, which takes it off the hot path at no cost to other tensors.
    """

    __slots__ = ()
    __module__ = "torch"
    __torch_function__ = _base.disabled_torch_function  # type: ignore[assignment]

    @property
    def _edge(self) -> Any:
        raise RuntimeError(refusal(self, "its base or another view of its base has been"))

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        self.__class__ = Tensor  # type: ignore[assignment]
        _edge_slot.__set__(self, edge)

    @property
    def requires_grad(self) -> bool:
        return True

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        Tensor.requires_grad.__set__(self, value)  # type: ignore[attr-defined]

    @property
    def output_nr(self) -> int:
        edge = _edge_slot.__get__(self)
        return edge.index if type(edge) is Slot else 0


ForbiddenView.__name__ = ForbiddenView.__qualname__ = "Tensor"
