"""Types of items, from the types of what they are taken out of."""

from __future__ import annotations

import operator
import typing
from typing import Any

from ..graph import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give a type to each node that takes an item out of a tuple, list or named tuple whose type is known."""
    for node in graph.nodes:
        if node.target is operator.getitem:
            source, index = node.args
            if source.type:
                node.type = _type_of_item(source.type, index, node.type)


def _type_of_item(kind: Any, index: Any, default: Any) -> Any:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        if len(parts) == 2 and parts[1] is ...:
            return parts[0]
        if len(parts) <= index:
            raise AssertionError(f"Index {index} out of range for parameterized_types (len={len(parts)})")
        return parts[index]
    if origin is list:
        return parts[0]
    if hasattr(kind, "_fields"):
        return typing.get_type_hints(kind).get(kind._fields[index], default)
    return default
