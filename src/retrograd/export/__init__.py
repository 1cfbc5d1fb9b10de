"""torch.export: a module becomes a graph without state, which is saved, loaded and run without the module's source.

The graph is a recording of one run (`fx/_recording.py`): it calls torch's functions, not the operations of aten that they are made of.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._absent import finder
from .._public import set_all
from .._tracebacks import guard_public as _guard_public
from ..fx.passes.infra.pass_base import PassResult
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils import _pytree as pytree
from . import dynamic_shapes as _shapes
from ._trace import recorded_program
from .dynamic_shapes import AdditionalInputs as AdditionalInputs
from .dynamic_shapes import Dim as Dim
from .dynamic_shapes import ShapesCollection as ShapesCollection
from .dynamic_shapes import dims as dims
from .exported_program import ExportedProgram as ExportedProgram
from .exported_program import ModuleCallEntry as ModuleCallEntry
from .exported_program import ModuleCallSignature as ModuleCallSignature
from .exported_program import default_decompositions as default_decompositions
from .graph_signature import ExportBackwardSignature as ExportBackwardSignature
from .graph_signature import ExportGraphSignature as ExportGraphSignature
from .unflatten import FlatArgsAdapter as FlatArgsAdapter
from .unflatten import UnflattenedModule as UnflattenedModule
from .unflatten import unflatten as unflatten

FileLike = str | os.PathLike[str] | Any
PassType = Callable[[Any], PassResult | None]


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Run a module once on examples; return its graph with all that it needs. Sizes are fixed but for `dynamic_shapes`."""
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if mod.__class__.__module__.startswith(("retrograd.jit", "torch.jit")):
        raise ValueError("Exporting a ScriptModule is not supported. Export the module that was scripted.")
    if not isinstance(args, tuple):
        errors = import_module("retrograd._dynamo.exc")
        raise errors.UserError(
            errors.UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    named = kwargs or {}
    args, named = _alone(args, named)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, named)
    changing = _shapes.sizes_that_change(_shapes.named_arguments(mod, args, named), dynamic_shapes)
    found = recorded_program(mod, args, named, changing)
    whole = ModuleCallSignature([], [], found.in_spec, found.out_spec, found.names + list(named))
    entries = [ModuleCallEntry("", whole), *(ModuleCallEntry(name) for name, _ in mod.named_modules() if name)]
    return ExportedProgram(
        found.parts,
        found.graph,
        found.signature,
        found.state,
        _shapes.ranges(changing),
        entries,
        (args, named),
        found.constants,
        guards=found.guards,
    )


def _alone(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return examples in which no tensor stands twice: what is said of sizes is known by the tensor."""
    seen: set[int] = set()

    def alone(value: Any) -> Any:
        if isinstance(value, Tensor) and id(value) in seen:
            return value.view_as(value)
        seen.add(id(value))
        return value

    found: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map(alone, (args, kwargs))
    return found


def draft_export(
    mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any
) -> ExportedProgram:
    """Do as `export`: what it refuses, it refuses."""
    options.pop("pre_dispatch", None)
    return export(mod, args, kwargs, **options)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be arguments and results."""
    pytree.register_dataclass(cls)


def save(
    ep: ExportedProgram,
    f: FileLike,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write an exported program to a file, in a record of our own."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    from ._files import write

    write(ep, f, extra_files)


def load(
    f: FileLike, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
) -> ExportedProgram:
    """Read an exported program that `save` wrote."""
    from ._files import read

    return read(f, extra_files)


__getattr__ = finder("torch.export")


_guard_public(globals())
set_all(globals(), but="recorded_program")
