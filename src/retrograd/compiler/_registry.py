"""The backends of `torch.compile` by their names, and which one is the default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

INDUCTOR = "inductor"  # compiles; the other names of torch's mean that operations run one by one
_tags: dict[str, tuple[str, ...]] = {
    "aot_eager": ("debug",), "cudagraphs": (), "eager": ("debug",), INDUCTOR: (), "openxla": (), "tvm": (),
}  # fmt: skip
_registered: dict[str, Callable[..., Any]] = {}
_default: Any = INDUCTOR


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Let `torch.compile(backend=name)` call a function; without one, return a decorator.

    Example:
        >>> import torch._dynamo
        >>> @torch._dynamo.register_backend
        ... def shows_its_graph(graph, inputs):
        ...     print([node.name for node in graph.graph.nodes])
        ...     return graph.forward
        >>> torch.compile(lambda x: x.sin() + 1, backend="shows_its_graph")(torch.zeros(2))
        ['l_x_', 'sin', 'add', 'output']
        tensor([1., 1.])
    """
    if compiler_fn is None:
        return partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _registered:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name], _tags[name] = compiler_fn, tuple(tags)
    compiler_fn._tags = tuple(tags)
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """Return what makes functions of graphs: a function itself, or the one of a name; a name of torch's own stays a name."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _tags:
        raise import_module("retrograd._dynamo.exc").InvalidBackend(compiler_fn)
    return _registered.get(compiler_fn, compiler_fn)


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names that `compile` takes for a backend. Of torch's own all but "inductor" mean that operations run one by one."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in _tags.items() if not excluded.intersection(tags))


def set_default_backend(backend: Any) -> None:
    """Set the backend of `compile` where none is named; None stands for "inductor"."""
    global _default
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    _default = INDUCTOR if backend is None else backend


def get_default_backend() -> Any:
    """Return the default backend of `compile`: its name, or a function."""
    return _default
