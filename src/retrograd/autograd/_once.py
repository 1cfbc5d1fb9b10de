"""`once_differentiable`: a backward that cannot itself be differentiated."""

from __future__ import annotations

import functools
from typing import Any

from .._graph.node import Node
from .._modes import current_mode, using
from ..tensor._base import wrap
from ..tensor._tensor import Tensor


def once_differentiable(backward: Any) -> Any:
    """Mark a backward that cannot itself be differentiated."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        tracked = current_mode().grad and any(isinstance(g, Tensor) and g._edge is not None for g in grads)
        with using(grad=False):
            results = backward(ctx, *grads)
        if not tracked:
            return results
        many = results if isinstance(results, tuple) else (results,)
        marked = tuple(_refuse_twice(r) if isinstance(r, Tensor) else r for r in many)
        return marked if isinstance(results, tuple) else marked[0]

    return wrapper


class Error(Node):
    """A node whose backward is an error."""

    __slots__ = ("message",)
    message: str

    def pull_back(self, g: Any, graph: bool) -> Any:
        raise RuntimeError(self.message)


def _refuse_twice(result: Any) -> Any:
    node = Error().begin((), of_user=False)
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    return wrap(result._array, node, result._storage)
