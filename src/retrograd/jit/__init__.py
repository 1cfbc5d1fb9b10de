"""torch.jit, without a compiler: the eager program is what a compiled one means, so that it runs as it stands.

`script` and `trace` return what they are given, and the marks for the compiler do nothing. What only a compiled program
has (its graph, its file) is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from .._absent import finder
from ..nn.modules.module import Module
from ._containers import isinstance as isinstance
from ._futures import Future, fork, wait

T = TypeVar("T")


class Error(Exception):
    """An error inside compiled code; nothing here raises it."""


class TracerWarning(Warning):
    """A warning of torch's tracer; nothing here gives it."""


class ScriptFunction:
    """The kind of compiled functions. None exists here: `script` returns the function itself."""


class ScriptModule(Module):
    """A module meant for the compiler. Its subclasses are modules as any other; `script` makes none."""


class RecursiveScriptModule(ScriptModule):
    """The kind of compiled modules in torch. None exists here."""


class TopLevelTracedModule(ScriptModule):
    """The kind of traced modules in torch. None exists here."""


class Attribute(NamedTuple):
    """A value with the type that a compiler would give it."""

    value: Any
    type: Any


def script(
    obj: T, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:  # torch's names, private ones included
    """Return the function, class or module itself."""
    return obj


def trace(func: T, example_inputs: Any = None, *args: Any, example_kwarg_inputs: Any = None, **options: Any) -> T:
    """Return the function or module itself. It keeps its branches, which a trace would have fixed by the example."""
    return func


def trace_module(mod: T, inputs: dict[str, Any], *args: Any, **options: Any) -> T:
    """Return the module itself."""
    return mod


def freeze(mod: T, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> T:
    """Return the module itself, which must be in eval mode."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: list[str] | None = None) -> T:
    """Return the module itself."""
    return mod


def is_scripting() -> bool:
    """Tell whether a compiled program runs: never."""
    return False


def is_tracing() -> bool:
    """Tell whether a program is being traced: never."""
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; the type is for a compiler."""
    return the_value


def _unchanged(fn: T) -> T:
    """Return what is given: the mark is for a compiler."""
    return fn


export = unused = interface = script_if_tracing = script_method = _overload = _overload_method = _unchanged


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leave a function to Python; used as `@ignore` or as `@ignore(...)`."""
    if callable(drop):
        return drop
    if type(drop) is not bool:
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return _unchanged


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Run a block; there is nothing to optimize."""
    yield


def _no_file(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.jit.{name}: files of compiled programs hold torch's intermediate code, which retrograd does not have. "
            "Save the numbers instead, torch.save(module.state_dict(), path), and load them into a module of the same class"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


save = _no_file("save")
load = _no_file("load")

__getattr__ = finder("torch.jit")

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
