"""What a program says to the compiler: which functions are left to Python, which are entry points, and whether it is compiled."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F")


class Error(Exception):
    """An error inside a scripted program."""


class FunctionModifiers:
    """How the compiler treats a function."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


class _State(threading.local):
    is_scripting = False


_state = _State()
recordings: list[Any] = []  # the traces that are being recorded, the innermost last: see `fx/_recording.py`


def is_scripting() -> bool:
    """Tell whether a scripted program runs.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return _state.is_scripting


def is_tracing() -> bool:
    """Tell whether `jit.trace` is recording.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return bool(recordings) and recordings[-1].is_jit_trace and not _state.is_scripting


@contextmanager
def scripting(is_on: bool) -> Iterator[None]:
    """Run a block as a scripted program, or as one of Python."""
    before, _state.is_scripting = _state.is_scripting, is_on
    try:
        yield
    finally:
        _state.is_scripting = before


def export(fn: F) -> F:
    """Mark a method that a scripted module has besides `forward`."""
    fn._torchscript_modifier = FunctionModifiers.EXPORT  # type: ignore[attr-defined]
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leave a function to Python; used as `@ignore` or as `@ignore(...)`.

    Args:
        drop: the function, or whether a call in a scripted program is an error

    Example:
        >>> shout = torch.jit.ignore(lambda word: word.upper())
        >>> shout("here")
        'HERE'
    """
    if callable(drop):
        return _left_to_python(drop, FunctionModifiers.IGNORE)
    if type(drop) is not bool:
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    modifier = FunctionModifiers.UNUSED if drop or kwargs.get("drop_on_export") else FunctionModifiers.IGNORE
    return lambda fn: _left_to_python(fn, modifier)


def unused(fn: Any) -> Any:
    """Mark a function, or a property, that scripted programs do not call: in one it raises an error.

    Args:
        fn: the function

    Example:
        >>> torch.jit.unused(lambda x: x + 1)(2)
        3
    """
    if isinstance(fn, property):
        return property(fn.fget and unused(fn.fget), fn.fset and unused(fn.fset), fn.fdel)
    return _left_to_python(fn, FunctionModifiers.UNUSED)


def _left_to_python(function: Callable[..., Any], modifier: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _state.is_scripting:
            return function(*args, **kwargs)
        if modifier == FunctionModifiers.UNUSED:
            raise Error("RuntimeError: This Python function is annotated to be ignored and cannot be run")
        with scripting(False):
            return function(*args, **kwargs)

    call._torchscript_modifier = modifier  # type: ignore[attr-defined]
    return call


def _drop(fn: F) -> F:
    """Mark a function that scripting does not look at."""
    fn._torchscript_modifier = FunctionModifiers._DROP  # type: ignore[attr-defined]
    return fn


def _copy_to_script_wrapper(fn: F) -> F:
    """Mark a method that a scripted module has as it is in Python."""
    fn._torchscript_modifier = FunctionModifiers.COPY_TO_SCRIPT_WRAPPER  # type: ignore[attr-defined]
    return fn


def get_torchscript_modifier(fn: Any) -> Any:
    """Return how a function is marked, None if it cannot be."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def is_ignored_fn(fn: Any) -> bool:
    """Tell whether a function is left to Python."""
    left = (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)
    return get_torchscript_modifier(fn) in left


def _overload(func: F) -> F:
    """Declare one of the signatures of a function. The last definition, without the mark, is the one that runs."""
    return func


_overload_method = _overload


def interface(obj: Any) -> Any:
    """Declare a class that says which methods a module has."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    obj.__torch_script_interface__ = obj  # type: ignore[attr-defined]
    return obj


class _IgnoreContextManager:
    """A block of a scripted function that is left to Python."""

    def __init__(self, **kwargs: Any) -> None:
        self._block = scripting(False)

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)
