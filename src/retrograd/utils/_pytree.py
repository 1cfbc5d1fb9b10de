"""Trees of Python containers: flatten, unflatten and map, with torch's function names."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple


class NodeDef(NamedTuple):
    """How one kind of container is taken apart and put together."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[list[Any], Any], Any]


SUPPORTED_NODES: dict[Any, NodeDef] = {
    dict: NodeDef(lambda d: (list(d.values()), list(d)), lambda v, keys: dict(zip(keys, v, strict=True))),
    list: NodeDef(lambda x: (x, None), lambda v, _: list(v)),
    tuple: NodeDef(lambda x: (list(x), None), lambda v, _: tuple(v)),
    OrderedDict: NodeDef(lambda d: (list(d.values()), list(d)), lambda v, keys: OrderedDict(zip(keys, v, strict=True))),
    deque: NodeDef(lambda x: (list(x), x.maxlen), lambda v, maxlen: deque(v, maxlen=maxlen)),
    defaultdict: NodeDef(
        lambda d: (list(d.values()), (d.default_factory, list(d))),
        lambda v, context: defaultdict(context[0], zip(context[1], v, strict=True)),
    ),
    namedtuple: NodeDef(lambda x: (list(x), type(x)), lambda v, kind: kind(*v)),
}


def register_pytree_node(cls: Any, flatten_fn: Any, unflatten_fn: Any, **_: Any) -> None:
    """Teach the functions here a new container."""
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


def _node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return namedtuple
    return None


class TreeSpec:
    """The shape of a tree without its leaves."""

    __slots__ = ("children_specs", "context", "num_leaves", "type")

    def __init__(self, type_: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type = type_
        self.context = context
        self.children_specs = children
        self.num_leaves: int = 1 if type_ is None else sum(child.num_leaves for child in children)

    def is_leaf(self) -> bool:
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, [{', '.join(map(repr, self.children_specs))}])"


LeafSpec = lambda: TreeSpec(None, None, [])  # noqa: E731 - torch's name for a constructor


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree and its shape."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return TreeSpec(None, None, [])
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Put leaves back into a shape."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """Return the shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Apply a function to every leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_flatten_up_to(rest, spec) for rest in rests]
    return tree_unflatten([func(*values) for values in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """Apply a function to the leaves of one type."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree, is_leaf=is_leaf)


def _flatten_up_to(tree: Any, spec: TreeSpec) -> list[Any]:
    if spec.type is None:
        return [tree]
    if _node_type(tree) != spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, _ = SUPPORTED_NODES[spec.type].flatten_fn(tree)
    return [
        leaf for child, sub in zip(children, spec.children_specs, strict=True) for leaf in _flatten_up_to(child, sub)
    ]


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec) -> list[Any] | None:
    """Give every leaf of a shape the value of the prefix tree above it; None if it is no prefix."""
    if treespec.type is None:
        return None if _node_type(tree) is not None else [tree]
    if _node_type(tree) is None:
        return [tree] * treespec.num_leaves
    if _node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != len(treespec.children_specs) or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec)
        if part is None:
            return None
        found += part
    return found
