"""Taking arguments apart by a known structure, for functions of nested containers."""

from __future__ import annotations

from typing import Any

from ..utils._pytree import TreeSpec, _flatten_up_to


def tree_flatten_spec(pytree: Any, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """Return the leaves of a tree that has the given structure."""
    return _flatten_up_to(pytree, spec)
