"""Trees of Python containers: the paths to their leaves, and their shapes as text."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from ._pytree import (
    FLATTEN_WITH_KEYS,
    SERIALISED,
    SUPPORTED_NODES,
    Serialised,
    TreeSpec,
    _flatten_up_to,
    _get_node_type,
    register_pytree_node,
    tree_structure,
    tree_unflatten,
)

PyTree = Context = DumpableContext = Any
FlattenFn = Callable[[Any], tuple[list[Any], Any]]
UnflattenFn = Callable[[Iterable[Any], Any], Any]
ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]
PyTreeSpec = TreeSpec


# ---- paths ----
@dataclass(frozen=True)
class SequenceKey:
    """A step to an element of a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A step to a value of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """Return a path as it would be written in a program."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Follow a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def flattening_with_keys(kind: Any) -> Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Any]]:
    """Return the function that takes one kind of container apart, with the step to each part."""

    def flatten(tree: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        return list(zip(_keys_of(tree, kind, len(children)), children, strict=True)), context

    return flatten


def _keys_of(tree: Any, kind: Any, count: int) -> list[Any]:
    if kind in (dict, OrderedDict, defaultdict):
        return [MappingKey(key) for key in tree]
    if kind is namedtuple:
        return [GetAttrKey(name) for name in tree._fields]
    if kind in (list, tuple, deque):
        return [SequenceKey(i) for i in range(count)]
    raise ValueError(
        f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
        "register_pytree_node."
    )


def _with_paths(path: KeyPath, tree: Any, is_leaf: Any) -> Iterable[tuple[KeyPath, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _get_node_type(tree)
    if kind is None:
        yield path, tree
        return
    take_apart = FLATTEN_WITH_KEYS.get(kind) or flattening_with_keys(kind)
    for key, child in take_apart(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree with the paths to them."""
    return list(_with_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves of a tree with the paths to them, and its shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Apply `func(path, leaf, ...)` to every leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_flatten_up_to(rest, spec) for rest in rests]
    results = [func(path, leaf, *rest) for (path, leaf), *rest in zip(pairs, *others, strict=True)]
    return tree_unflatten(results, spec)


def register_dataclass(cls: Any, *, field_names: Any = None, drop_field_names: Any = None) -> None:
    """Teach the functions here a dataclass: its fields are its children."""
    names = list(field_names) if field_names is not None else [f.name for f in fields(cls) if f.init]
    names = [name for name in names if name not in set(drop_field_names or ())]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in present], [present, [n for n in names if n not in present]]

    def unflatten(values: Any, context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return list(zip(map(GetAttrKey, context[0]), values, strict=True)), context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


# ---- shapes as text ----
PROTOCOL = 1  # torch's number for this way of writing


def _importable(name: str) -> Any:
    import importlib

    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _name_of(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_BUILTIN: dict[Any, Serialised] = {
    tuple: Serialised("builtins.tuple", None, None),
    list: Serialised("builtins.list", None, None),
    dict: Serialised("builtins.dict", None, None),
    OrderedDict: Serialised("collections.OrderedDict", None, None),
    deque: Serialised("collections.deque", None, None),
    namedtuple: Serialised("collections.namedtuple", _name_of, _importable),
    defaultdict: Serialised(
        "collections.defaultdict",
        lambda context: {
            "default_factory_module": context[0].__module__,
            "default_factory_name": context[0].__qualname__,
            "dict_context": context[1],
        },
        lambda dumped: [
            _importable(f"{dumped['default_factory_module']}.{dumped['default_factory_name']}"),
            dumped["dict_context"],
        ],
    ),
}


def _written(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    how = _BUILTIN.get(spec.type) or SERIALISED.get(spec.type)
    if how is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    context = spec.context if how.dump_context is None else how.dump_context(spec.context)
    if how.dump_context is None:
        try:
            context = json.dumps(context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    return {"type": how.name, "context": context, "children_spec": [_written(c) for c in spec.children_specs]}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a shape as text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    if protocol not in (None, PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return json.dumps((PROTOCOL, _written(treespec)))


def _read(written: dict[str, Any]) -> TreeSpec:
    if written["type"] is None:
        return TreeSpec(None, None, [])
    found = [(cls, how) for cls, how in (_BUILTIN | SERIALISED).items() if how.name == written["type"]]
    if not found:
        raise NotImplementedError(f"Deserializing {written['type']} in pytree is not registered.")
    cls, how = found[0]
    context = json.loads(written["context"]) if how.load_context is None else how.load_context(written["context"])
    return TreeSpec(cls, context, [_read(child) for child in written["children_spec"]])


def treespec_loads(serialized: str) -> TreeSpec:
    """Read a shape back from text."""
    protocol, written = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return _read(written)
