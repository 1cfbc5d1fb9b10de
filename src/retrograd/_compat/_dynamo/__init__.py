"""torch._dynamo: the switches of torch's compiler that scripts set. See `compiler`: nothing is compiled here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from retrograd.compiler import allow_in_graph, disable, is_compiling, list_backends, reset
from retrograd.compiler._module import OptimizedModule

config = SimpleNamespace(suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8)


def optimize(backend: Any = "inductor", **kwargs: Any) -> Any:
    """Return a decorator that leaves a function as it is."""
    return disable()


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Accept that a dimension's length changes between calls."""


mark_static = maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Accept that a tensor stays where it is between calls."""


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "config",
    "disable",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]
