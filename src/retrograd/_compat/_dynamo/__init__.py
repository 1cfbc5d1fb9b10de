"""torch._dynamo: the switches of torch's compiler that scripts set. See `compiler` for what compiles."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from retrograd import compiler
from retrograd._absent import finder
from retrograd._compiler_settings import Settings
from retrograd.compiler import allow_in_graph, disable, is_compiling, list_backends, reset
from retrograd.compiler._module import OptimizedModule
from retrograd.compiler._registry import lookup_backend, register_backend

eval_frame: Any = import_module(".eval_frame", __name__)
config = Settings(
    accumulated_cache_size_limit=256,
    allow_unspec_int_on_nn_module=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_size_limit=8,
    capture_dynamic_output_shape_ops=False,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    disable=False,
    dynamic_shapes=True,
    guard_nn_modules=True,
    inline_inbuilt_nn_modules=True,
    log_level=30,
    optimize_ddp=True,
    recompile_limit=8,
    reorderable_logging_functions=set(),
    skip_fwd_side_effects_in_bwd_under_checkpoint=False,
    suppress_errors=False,
    verbose=False,
)
T = TypeVar("T")
explain = import_module("._explaining", __name__).explain


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, **kwargs: Any) -> Any:
    """Return a decorator that compiles: `torch.compile` under its old name."""
    return compiler.compile(backend=backend, fullgraph=nopython, dynamic=dynamic)


def graph_break(msg: str = "") -> None:
    """Stand where a compiled function is to be divided; in eager it does nothing."""


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Accept that a dimension's length changes between calls."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Accept that a dimension, or each, has the same length in all calls."""


def assume_constant_result(fn: T) -> T:
    """Return the function: nothing is traced that could keep its result."""
    return fn


nonstrict_trace = assume_constant_result
reset_code_caches = reset
__getattr__ = finder("torch._dynamo")


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Accept that a tensor stays where it is between calls."""


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "eval_frame",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "register_backend",
    "reset",
    "reset_code_caches",
]
