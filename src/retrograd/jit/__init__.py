"""torch.jit: programs with the face of compiled ones.

`trace` runs a program on an example and keeps a graph of what it computed. `script` keeps the program itself: it runs as Python, with
its branches and loops. Both give modules that have parameters, go to files and come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from typing import Final as Final

from .._absent import finder
from .._public import set_all
from .._tracebacks import guarded
from ._containers import isinstance as isinstance
from ._futures import Future as Future
from ._futures import fork as fork
from ._futures import wait as wait
from ._marks import Error as Error
from ._marks import _drop as _drop
from ._marks import _IgnoreContextManager as _IgnoreContextManager
from ._marks import _overload as _overload
from ._marks import _overload_method as _overload_method
from ._marks import export as export
from ._marks import ignore as ignore
from ._marks import interface as interface
from ._marks import is_scripting as is_scripting
from ._marks import is_tracing as is_tracing
from ._marks import unused as unused
from ._script import CompilationUnit as CompilationUnit
from ._script import RecursiveScriptModule as RecursiveScriptModule
from ._script import ScriptFunction as ScriptFunction
from ._script import ScriptMethod as ScriptMethod
from ._script import ScriptModule as ScriptModule
from ._script import freeze as freeze
from ._script import optimize_for_inference as optimize_for_inference
from ._script import run_frozen_optimizations as run_frozen_optimizations
from ._script import script as script
from ._script import script_if_tracing as script_if_tracing
from ._script import script_method as script_method

if TYPE_CHECKING:
    from ._serialization import load as load
    from ._serialization import save as save
    from ._trace import TopLevelTracedModule as TopLevelTracedModule
    from ._trace import TracedModule as TracedModule
    from ._trace import TracerWarning as TracerWarning
    from ._trace import TracingCheckError as TracingCheckError
    from ._trace import _get_trace_graph as _get_trace_graph
    from ._trace import trace as trace
    from ._trace import trace_module as trace_module

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
TRACING = "TopLevelTracedModule TracedModule TracerWarning TracingCheckError _get_trace_graph trace trace_module"
LATER = dict.fromkeys(["load", "save"], "_serialization") | dict.fromkeys(TRACING.split(), "_trace")
_absent = finder("torch.jit")


@guarded
def __getattr__(name: str) -> Any:
    if name not in LATER:
        return _absent(name)
    value = globals()[name] = getattr(import_module(f".{LATER[name]}", __name__), name)
    return value


PRIVATE = ("_IgnoreContextManager", "_drop", "_overload", "_overload_method")  # which torch lists
set_all(globals(), "Final", "Future", *PRIVATE, *LATER, but="T")
