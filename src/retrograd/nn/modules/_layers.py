"""What small layers share: constructors that complain in each layer's own name, `ReLU.__init__() got ...`, and their text."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ..._tracebacks import guarded
from .module import Module

PACKAGE = __name__.partition(".")[0] + "."


def with_named_init(cls: Any) -> Any:
    """Give a class its parent's constructor under its own name, which is what Python's complaints begin with."""
    inherited = getattr(cls.__init__, "__wrapped__", cls.__init__)  # inside of what hides our frames
    made = FunctionType(
        inherited.__code__, inherited.__globals__, "__init__", inherited.__defaults__, inherited.__closure__
    )
    made.__kwdefaults__ = inherited.__kwdefaults__
    made.__annotations__ = inherited.__annotations__
    made.__doc__ = inherited.__doc__
    made.__module__ = cls.__module__
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = guarded(made)
    return cls


class NamedInit:
    """A base of private layers: their public children in the package have constructors of their own name."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        public = not cls.__name__.startswith("_") and cls.__module__.startswith(PACKAGE)
        if public and "__init__" not in vars(cls):
            with_named_init(cls)


class Shown(Module):
    """A layer whose text has some of its attributes, by name."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        return ", ".join([f"{name}={getattr(self, name)}" for name in self._shown])
