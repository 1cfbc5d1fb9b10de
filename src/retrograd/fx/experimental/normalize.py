"""Write calls in one way: arguments by keyword, operators instead of functions."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import retrograd as torch

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy
from .schema_type_annotation import AnnotateTypesWithSchema


class NormalizeArgs(Transformer):
    """Gives arguments by the names of the signature, in its order, with defaults; all by keyword unless told otherwise.

    A call whose signature is not known, or takes any number of arguments, stays as it is.
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Write a node; it keeps what the old one remembers."""
        if n.op == "call_function":
            args, kwargs = self.fetch_args_kwargs_from_env(n)

            def kind(arg: Any) -> Any:
                return n.meta.get("type") if isinstance(arg, Node) else type(arg)

            arg_types = tuple(create_type_hint(each) for each in map_aggregate(n.args, kind))
            made = self.call_function(n.target, args, kwargs, arg_types, {key: kind(v) for key, v in kwargs.items()})
        else:
            made = super().run_node(n)
        if n.op != "output":
            self.node_map[made] = n
            made.node.meta, made.node.type = n.meta, n.type
        return made

    def call_function(
        self, target: Any, args: Any, kwargs: Any, arg_types: Any = None, kwarg_types: dict[str, Any] | None = None
    ) -> Any:
        """Write the call of a function."""
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Write the call of a layer."""
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(found or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """Writes `torch.add(a, b)` as `a + b`, and so on for arithmetic and comparisons of two values."""

    binary_magic_method_remap: ClassVar[dict[Any, Any]] = {
        torch.add: operator.add,
        torch.mul: operator.mul,
        torch.sub: operator.sub,
        torch.div: operator.truediv,
        torch.floor_divide: operator.floordiv,
        torch.remainder: operator.mod,
        **{getattr(torch, name): getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    }

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Write the call; one of two values as an operator."""
        if target in self.binary_magic_method_remap and len(args) == 2:
            if kwargs:  # torch drops them, and so another result comes of torch.add(a, b, alpha=2)
                return super().call_function(target, args, kwargs)
            target = self.binary_magic_method_remap[target]
        return super().call_function(target, args, kwargs)
