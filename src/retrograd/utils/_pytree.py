"""Trees of Python containers: flatten, unflatten and map, with torch's function names."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, NamedTuple

from .._tracebacks import hide as _hide


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
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda v, context: defaultdict(context[0], zip(context[1], v, strict=True)),
    ),
    namedtuple: NodeDef(lambda x: (list(x), type(x)), lambda v, kind: kind(*v)),
}


BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


class Serialised(NamedTuple):
    """How a kind of container is written as text: its name, and its context as something JSON knows."""

    name: str
    dump_context: Callable[[Any], Any] | None
    load_context: Callable[[Any], Any] | None


SERIALISED: dict[Any, Serialised] = {}
FLATTEN_WITH_KEYS: dict[Any, Callable[[Any], tuple[list[tuple[Any, Any]], Any]]] = {}


def register_pytree_node(
    cls: Any,
    flatten_fn: Any,
    unflatten_fn: Any,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Teach the functions here a new container."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    SERIALISED[cls] = Serialised(name, to_dumpable_context, from_dumpable_context)
    if flatten_with_keys_fn is not None:
        FLATTEN_WITH_KEYS[cls] = flatten_with_keys_fn


def register_constant(cls: Any) -> None:
    """Let values of a class, which compare by what they are, count as part of the structure: they have no leaves."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation for correctness of use in "
            "torch.compile. "
        )
    register_pytree_node(cls, lambda value: ([], value), lambda values, context: context)


_register_pytree_node = register_pytree_node  # under its older name


def _get_node_type(tree: Any) -> Any:
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
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.is_leaf():
            return "*"
        children = (",\n" + " " * (indent + 2)).join(child._shown(indent + 2) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """Return the shapes below this one."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """Return one of the shapes below this one."""
        return self.children_specs[index]

    def unflatten(self, leaves: Any) -> Any:
        """Put leaves into this shape."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return _unflatten(iter(leaves), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Take a tree apart down to this shape; what is below becomes leaves."""
        return _flatten_up_to(tree, self)


def LeafSpec() -> TreeSpec:  # noqa: N802 - torch's name
    """Return the shape of a leaf."""
    return TreeSpec(None, None, [])


treespec_leaf = LeafSpec


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree and its shape."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _get_node_type(tree)
    if kind is None:
        leaves.append(tree)
        return TreeSpec(None, None, [])
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """Put leaves back into a shape."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


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


class _Leaf:
    """Stands for a leaf where only the structure is shown."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a structure as its containers print, with a star for every leaf."""
    return repr(tree_unflatten([_Leaf()] * treespec.num_leaves, treespec))


def tree_map(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Apply a function to every leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_flatten_up_to(rest, spec) for rest in rests]
    try:
        return tree_unflatten([func(*values) for values in zip(leaves, *others, strict=True)], spec)
    except Exception as error:
        _hide(error)
        raise


def _chosen(kind: Any) -> Callable[[Any], bool]:
    """Return what tells whether a leaf is meant by a type, several types, or a predicate."""
    if isinstance(kind, (type, tuple, UnionType)):
        return lambda x: isinstance(x, kind)
    if callable(kind):
        return kind  # type: ignore[no-any-return]
    raise TypeError(
        "Argument must be a type, a tuple of types, or a callable predicate. Did you forget to pass the type?"
    )


def tree_map_only(type_or_types_or_pred: Any, /, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """Apply a function to the leaves of some types."""
    chosen = _chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Call a function for every leaf, for its effect, and return the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_flatten_up_to(rest, spec) for rest in rests]
    for values in zip(leaves, *others, strict=True):
        func(*values)
    return tree


def tree_map_only_(type_or_types_or_pred: Any, /, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """Call a function for the leaves of some types, for its effect, and return the tree."""
    chosen = _chosen(type_or_types_or_pred)
    return tree_map_(lambda x: func(x) if chosen(x) else None, tree, is_leaf=is_leaf)


def tree_all(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Tell whether a predicate holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Tell whether a predicate holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Tell whether a predicate holds for every leaf of some types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Tell whether a predicate holds for a leaf of some types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return tree_leaves((args, kwargs))


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """Go through the leaves of a tree."""
    return iter(tree_leaves(tree, is_leaf))


def tree_is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    """Tell whether a value is no container that is known here."""
    return bool(is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) is None


def is_namedtuple_class(cls: Any) -> bool:
    """Tell whether a type was made by `namedtuple`."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Tell whether a value is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Tell whether a value or a type is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Tell whether a type is a sequence of named values made in C, as `time.struct_time` is."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(
            isinstance(cls.__dict__.get(name), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def is_structseq_instance(obj: object) -> bool:
    """Tell whether a value is a sequence of named values made in C."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Tell whether a value or a type is a sequence of named values made in C."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _flatten_up_to(tree: Any, spec: TreeSpec) -> list[Any]:
    if spec.type is None:
        return [tree]
    if _get_node_type(tree) != spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, context = SUPPORTED_NODES[spec.type].flatten_fn(tree)
    if len(children) != len(spec.children_specs):
        raise ValueError(f"Node arity mismatch; expected {len(spec.children_specs)}, but got {len(children)}.")
    if spec.type not in (dict, OrderedDict, defaultdict, deque) and context != spec.context:
        raise ValueError(f"Node context mismatch for custom node type {spec.type!r}.")
    if spec.type in (dict, OrderedDict, defaultdict):
        expected = spec.context if spec.type is not defaultdict else spec.context[1]
        if set(expected) != set(tree):
            missing, extra = set(expected) - set(tree), set(tree) - set(expected)
            message = f"; missing key(s): {missing}" * bool(missing) + f"; extra key(s): {extra}" * bool(extra)
            raise ValueError(f"Node keys mismatch{message}.")
        children = [tree[key] for key in expected]
    return [
        leaf for child, sub in zip(children, spec.children_specs, strict=True) for leaf in _flatten_up_to(child, sub)
    ]


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec) -> list[Any] | None:
    """Give every leaf of a shape the value of the prefix tree above it; None if it is no prefix."""
    if treespec.type is None:
        return None if _get_node_type(tree) is not None else [tree]
    if _get_node_type(tree) is None:
        return [tree] * treespec.num_leaves
    if _get_node_type(tree) != treespec.type:
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


def __getattr__(name: str) -> Any:
    """Find what concerns paths and text, which few programs use, when it is asked for."""
    if name.startswith("__"):  # the import system asks for some
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _pytree_paths

    if not name.startswith("_") and hasattr(_pytree_paths, name):
        return getattr(_pytree_paths, name)
    kind, _, what = name.removeprefix("_").partition("_")
    if kind in (
        names := {one.__name__.lower(): one for one in BUILTIN_TYPES}
    ):  # `_dict_flatten`, for containers like dicts
        node = SUPPORTED_NODES[names[kind]]
        if what in ("flatten", "unflatten"):
            return getattr(node, f"{what}_fn")
        if what == "flatten_with_keys":
            return _pytree_paths.flattening_with_keys(names[kind])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
