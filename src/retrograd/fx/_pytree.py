"""Taking arguments apart by a known structure, for functions of nested containers."""

from __future__ import annotations

from typing import Any

from ..utils._pytree import TreeSpec, _flatten_up_to


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """Return the leaves of a tree that has the given structure."""
    if spec.type is tuple and isinstance(pytree, list):
        pytree = tuple(pytree)  # generated code writes the arguments as a list
    return _flatten_up_to(pytree, spec)


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Any, flatten_fn_exact_match_spec: Any = None) -> None:
    """Do nothing: a container that `utils._pytree` knows is taken apart here as well."""
