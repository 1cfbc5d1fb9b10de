"""Functions whose inputs and outputs are nested containers of tensors.

torch keeps the class for old code, but its way of calling went with instances of Function. Here `apply` takes and returns nested values.
"""

from __future__ import annotations

from typing import Any

from ..tensor._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .function import Function


class NestedIOFunction(Function):
    """A Function with `forward_extended(ctx, *nested)` and `backward_extended(ctx, *nested_gradients)`."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run on nested values; the tensors among them take part in the graph."""
        leaves, spec = tree_flatten(args)
        shapes: dict[str, Any] = {}
        flat = super().apply(cls, spec, shapes, *leaves)
        out = shapes["output"]
        return tree_unflatten(flat if isinstance(flat, tuple) else (flat,), out)

    @staticmethod
    def forward(ctx: Any, cls: Any, spec: Any, shapes: dict[str, Any], *leaves: Any) -> Any:
        out, shapes["output"] = tree_flatten(cls.forward_extended(ctx, *tree_unflatten(leaves, spec)))
        ctx._nested = cls, shapes["output"], len(leaves)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        cls, spec, count = ctx._nested
        found = tree_flatten(cls.backward_extended(ctx, *_as_given(tree_unflatten(gradients, spec))))[0]
        return (None, None, None, *found[:count], *(None,) * (count - len(found)))

    @staticmethod
    def forward_extended(ctx: Any, *input: Any) -> Any:
        """Compute; a subclass says how."""
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx: Any, *grad_output: Any) -> Any:
        """Return gradients in the order of the inputs' tensors; a subclass says how."""
        raise NotImplementedError


def _as_given(tree: Any) -> tuple[Any, ...]:
    return (tree,) if isinstance(tree, Tensor) or not isinstance(tree, tuple) else tree
