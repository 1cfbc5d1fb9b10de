"""Rules that tell which nodes a backend can run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from ... import nn
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportDict = Mapping[TargetTypeName, Any]
IsNodeSupported = Callable[[Mapping[str, nn.Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """A rule: `is_node_supported` tells whether a node can run."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Tell whether a node can run; `submodules` is `dict(module.named_modules())`."""


class OperatorSupport(OperatorSupportBase):
    """A rule from a table: the name of a target, and None or the dtypes that it takes, `(([float32], None), {"x": [int64]})`.

    A None among the dtypes stands for any, and arguments that the table does not name are not looked at.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Tell whether the table has the node's target, with the dtypes of its arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        name = get_node_target(submodules, node)
        if name not in self._support_dict:
            return False
        rule = self._support_dict[name]
        if rule is None:
            return True
        by_place, by_name = rule
        checked = list(zip(node.args, by_place, strict=False))
        checked += [(node.kwargs[key], allowed) for key, allowed in by_name.items() if key in node.kwargs]
        return all(
            allowed is None or not isinstance(arg, Node) or _get_arg_dtype(arg) in allowed for arg, allowed in checked
        )


def _get_arg_dtype(arg: Node) -> Any:
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]


class _FunctionalOperatorSupport(OperatorSupportBase):
    def __init__(self, rule: IsNodeSupported) -> None:
        self.rule = rule

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        return self.rule(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Make a rule of a function."""
    return _FunctionalOperatorSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the rule that all of these must agree to."""
    return create_op_support(lambda submodules, node: all(r.is_node_supported(submodules, node) for r in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the rule that one of these must agree to."""
    return create_op_support(lambda submodules, node: any(r.is_node_supported(submodules, node) for r in op_support))


class OpSupports:
    """Small rules to put together with `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Return the rule against nodes that take a tensor of a dtype."""
        return create_op_support(lambda _, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return the rule against nodes of certain names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
