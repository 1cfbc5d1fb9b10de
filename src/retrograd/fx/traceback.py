"""What nodes remember of where they come from."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .graph import Graph
from .node import Node

_current_meta: dict[str, Any] = {}
_is_preserving = False
_replayed: Node | None = None


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

    @property
    def _actions(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._actions,
            "from_node": [each.to_dict() for each in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def print_readable(self, indent: int = 0) -> str:
        """Write where the node comes from, step by step."""
        place = f"(name={self.name}, pass_name={self.pass_name}, action={self._actions}, graph_id={self.graph_id})"
        own = f"{' ' * 4 * indent}{place}\n"
        return own + "".join(each.print_readable(indent + 1) for each in self.from_node)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Run a block in which new nodes take over what the current one remembers."""
    global _is_preserving
    before, _is_preserving = _is_preserving, enable
    try:
        with _remembering(dict(_current_meta)):
            yield
    finally:
        _is_preserving = before


def has_preserved_node_meta() -> bool:
    """Tell whether new nodes take over what the current one remembers."""
    return _is_preserving


def get_current_meta() -> dict[str, Any]:
    """Return what new nodes take over."""
    return _current_meta


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Run a block in which a node is the current one."""
    if not (_is_preserving and node.meta):
        yield
        return
    with _remembering({**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}):
        yield


@contextmanager
def _remembering(meta: dict[str, Any]) -> Iterator[None]:
    global _current_meta
    before, _current_meta = _current_meta, meta
    try:
        yield
    finally:
        _current_meta = before


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Run a block whose nodes remember these facts."""
    with _remembering({**_current_meta, "custom": {**_current_meta.get("custom", {}), **annotation_dict}}):
        yield


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let the nodes of a function remember these facts."""
    return annotate(annotation_dict)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Say which node of autograd's graph runs backward now; they may be nested."""
    if _is_preserving:
        _current_meta["grad_fn_seq_nr"] = [*_current_meta.get("grad_fn_seq_nr", []), seq_nr]
        _current_meta["in_grad_fn"] = len(_current_meta["grad_fn_seq_nr"])


def reset_grad_fn_seq_nr() -> None:
    """Say that the last of these nodes has run."""
    if not _is_preserving:
        return
    level = _current_meta.get("in_grad_fn", 0)
    if level <= 0:
        raise AssertionError(f"Expected current_level > 0, got {level}")
    left = _current_meta.pop("grad_fn_seq_nr")[:-1]
    del _current_meta["in_grad_fn"]
    if left:
        _current_meta.update(grad_fn_seq_nr=left, in_grad_fn=level - 1)


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Run a block in which a node is written again."""
    global _replayed
    before, _replayed = _replayed, node
    try:
        yield
    finally:
        _replayed = before


def get_current_replay_node() -> Node | None:
    """Return the node that is written again."""
    return _replayed


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """Return where the nodes that call functions come from, as plain values by the names of the nodes."""
    calls = graph.find_nodes(op="call_function")
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])] for node in calls}


def set_stack_trace(stack: list[str]) -> None:
    """Say where the current node comes from."""
    if _is_preserving and stack:
        _current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return where the current node, or this call, comes from."""
    import traceback

    return [_current_meta["stack_trace"]] if "stack_trace" in _current_meta else traceback.format_stack()
