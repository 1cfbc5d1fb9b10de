"""What nodes remember of where they come from."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .node import Node

_current_meta: dict[str, Any] = {}
_is_preserving = False


class NodeSourceAction(enum.Enum):
    """What a pass did to a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: a node of an earlier graph, and the pass that made this one of it."""

    def __init__(self, node: Node | None, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        self.action = [action] if isinstance(action, NodeSourceAction) else list(action or [])
        self.name = "" if node is None else node.name
        self.target = "" if node is None else node._pretty_print_target(node.target)
        self.graph_id = -1 if node is None else id(node.graph)
        self.from_node: list[NodeSource] = list(node.meta.get("from_node", [])) if node is not None else []

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """Write where the node comes from, step by step."""
        actions = "+".join(each.name.lower() for each in self.action)
        own = f"{' ' * 4 * indent}(name={self.name}, pass_name={self.pass_name}, action={actions}, graph_id={self.graph_id})\n"
        return own + "".join(each.print_readable(indent + 1) for each in self.from_node)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Run a block in which new nodes take over what the current one remembers."""
    global _is_preserving, _current_meta
    before = _is_preserving, _current_meta
    _is_preserving, _current_meta = enable, dict(_current_meta)
    try:
        yield
    finally:
        _is_preserving, _current_meta = before


def has_preserved_node_meta() -> bool:
    """Tell whether new nodes take over what the current one remembers."""
    return _is_preserving


def get_current_meta() -> dict[str, Any]:
    """Return what new nodes take over."""
    return _current_meta


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Run a block in which a node is the current one."""
    global _current_meta
    if not (_is_preserving and node.meta):
        yield
        return
    before, _current_meta = (
        _current_meta,
        {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]},
    )
    try:
        yield
    finally:
        _current_meta = before


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Run a block whose nodes remember these facts."""
    global _current_meta
    before = _current_meta
    _current_meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _current_meta = before


def set_stack_trace(stack: list[str]) -> None:
    """Say where the current node comes from."""
    if _is_preserving and stack:
        _current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return where the current node, or this call, comes from."""
    import traceback

    return [_current_meta["stack_trace"]] if "stack_trace" in _current_meta else traceback.format_stack()
