"""While a program is traced, some functions are replaced by ones that record: modules' calls, and what `wrap` was told of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..utils._pytree import tree_leaves
from .proxy import Proxy

_wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}  # the globals in which a name stands
_wrapped_methods: list[tuple[type, str]] = []
_ABSENT = object()


class Patcher:
    """Replaces attributes and globals, and puts them back in the reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def patch_global(self, table: dict[str, Any], name: str, new: Any) -> None:
        """Replace a name in a module's globals, or add it."""
        old = table.get(name, _ABSENT)
        self._undo.append(lambda: table.pop(name) if old is _ABSENT else table.__setitem__(name, old))
        table[name] = new

    def patch_method(self, cls: type, name: str, new: Any) -> None:
        """Replace an attribute of a class, of which nobody is told: for programs it stays the same."""
        old = cls.__dict__.get(name, _ABSENT)
        back = type.__delattr__ if old is _ABSENT else type.__setattr__
        self._undo.append(lambda: back(cls, name, *(() if old is _ABSENT else (old,))))
        type.__setattr__(cls, name, new)

    def visit_once(self, thing: Any) -> bool:
        """Tell whether something was not seen before."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def revert(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


@contextmanager
def patching() -> Iterator[Patcher]:
    """Run a block with a patcher that puts everything back at its end."""
    patcher = Patcher()
    try:
        yield patcher
    finally:
        patcher.revert()


def find_proxy(*values: Any) -> Proxy | None:
    """Return a proxy among nested values, if there is one."""
    return next((value for value in tree_leaves(values) if isinstance(value, Proxy)), None)


def recording(function: Callable[..., Any], method: str = "") -> Callable[..., Any]:
    """Return a function, or the method of a name, that becomes a node if it is called with a proxy."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if method:
            return proxy.tracer.create_proxy("call_method", method, args, kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def patch_wrapped(patcher: Patcher) -> None:
    """Replace what `wrap` was told of."""
    import builtins

    for (_, name), table in _wrapped_functions.copy().items():
        function = table[name] if name in table else getattr(builtins, name)
        patcher.patch_global(table, name, recording(function))
    for cls, name in _wrapped_methods:
        patcher.patch_method(cls, name, recording(getattr(cls, name), name))


def patch_known(patcher: Patcher, table: dict[str, Any], function_ids: set[int]) -> None:
    """Replace functions of given modules, such as `math.sqrt`, where a program's globals name them."""
    if patcher.visit_once(table):
        for name, value in list(table.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch_global(table, name, recording(value))
