"""Types of nodes, from the signatures of what they call."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from ... import nn
from ...tensor import Tensor
from ..graph_module import GraphModule
from ..interpreter import Transformer

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Gives types to the nodes that call functions of `nn.functional` and layers of `nn`, and that read tensors and numbers."""

    def __init__(
        self,
        module: GraphModule,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Write the call, with the type that the function returns."""
        wanted = self.annotate_functionals and getattr(nn.functional, getattr(target, "__name__", ""), None) is target
        return _typed(super().call_function(target, args, kwargs), _returned(target) if wanted else None)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Write the call, with the type that the layer returns."""
        module = self.fetch_attr(target)
        wanted = self.annotate_modules and getattr(nn, type(module).__name__, None) is type(module)
        return _typed(super().call_module(target, args, kwargs), _returned(module.forward) if wanted else None)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Write the read, with the type of what is there."""
        read = super().get_attr(target, args, kwargs)
        return _typed(read, _type_of_value(self.fetch_attr(target))) if self.annotate_get_attrs else read


def _typed(proxy: Any, kind: Any) -> Any:
    proxy.node.type = proxy.node.type or kind
    return proxy


def _returned(function: Any) -> Any:
    """Return what a function says that it returns; a layer or function that leaves it open returns a tensor."""
    try:
        kind = typing.get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        kind = inspect.signature(function).return_annotation
    return Tensor if kind is Any or kind is inspect.Signature.empty else kind


def _type_of_value(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Tensor
    return type(value) if isinstance(value, (bool, int, float, str)) else None
