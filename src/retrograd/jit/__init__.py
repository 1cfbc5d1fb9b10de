"""torch.jit: programs with the face of compiled ones.

`trace` runs a program on an example and keeps a graph of what it computed. `script` keeps the program itself: it runs as Python, with
its branches and loops. Both give modules that have parameters, go to files and come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from .._absent import finder
from ._containers import isinstance as isinstance
from ._futures import Future, fork, wait
from ._marks import (
    Error,
    _drop,
    _IgnoreContextManager,
    _overload,
    _overload_method,
    export,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    unused,
)
from ._script import (
    CompilationUnit,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptMethod,
    ScriptModule,
    freeze,
    optimize_for_inference,
    run_frozen_optimizations,
    script,
    script_if_tracing,
    script_method,
)

if TYPE_CHECKING:
    from ._serialization import load, save
    from ._trace import (
        TopLevelTracedModule,
        TracedModule,
        TracerWarning,
        TracingCheckError,
        _get_trace_graph,
        trace,
        trace_module,
    )

T = TypeVar("T")
_script_if_tracing = script_if_tracing
_fork, _wait, _isinstance = fork, wait, isinstance


class ScriptWarning(Warning):
    """A warning of torch's compiler; nothing here gives it."""


class Attribute(NamedTuple):
    """A value with the type that a compiler would give it."""

    value: Any
    type: Any


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; the type is for a compiler."""
    return the_value


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Run a block; there is nothing to optimize."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Run a block; nothing is fused."""
    yield


class strict_fusion:  # noqa: N801 - torch's name
    """A block in which all shall be fused: nothing is, and nobody says so."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def export_opnames(m: Any) -> list[str]:
    """Return the names of the functions and methods that a traced module calls."""
    from ..fx.node import _get_qualified_name

    called = [node.target for graph in m.graphs().values() for node in graph.nodes if node.op.startswith("call_")]
    return sorted({target if type(target) is str else _get_qualified_name(target) for target in called})


def set_fusion_strategy(strategy: Any) -> Any:
    """Accept how operations shall be fused: they are not."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Accept a switch of a fuser that is not here."""


def onednn_fusion_enabled() -> bool:
    """Tell whether operations are fused: never."""
    return False


# These need torch.fx, which takes longer to load than all else here.
LATER = dict.fromkeys(["load", "save"], "_serialization") | dict.fromkeys(
    [
        "TopLevelTracedModule",
        "TracedModule",
        "TracerWarning",
        "TracingCheckError",
        "_get_trace_graph",
        "trace",
        "trace_module",
    ],
    "_trace",
)
_absent = finder("torch.jit")


def __getattr__(name: str) -> Any:
    if name not in LATER:
        return _absent(name)
    value = globals()[name] = getattr(import_module(f".{LATER[name]}", __name__), name)
    return value


__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptMethod",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "_IgnoreContextManager",
    "_drop",
    "_get_trace_graph",
    "_overload",
    "_overload_method",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
