"""torch.compiler: programs that compile run as they are, operation by operation.

retrograd has no compiler. `compile` checks its arguments as torch does and returns something that computes the same: a function
itself, a module in the wrapper that torch makes of it, so that state_dicts have the names that scripts expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._absent import finder
from .._public import set_all

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("aot_eager", "cudagraphs", "eager", "inductor", "openxla", "tvm")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
) -> Any:
    """Return a function as it is, or a module in an `OptimizedModule`: both run eagerly."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if isinstance(backend, str) and backend not in BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends.")
    if model is None:
        return lambda function: compile(function, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if not isinstance(model, Module) or disable:
        return model
    from ._module import OptimizedModule

    return OptimizedModule(model)


def is_compiling() -> bool:
    """Tell whether the caller is being compiled: never."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def _as_it_is(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a function as it is; without one, a decorator that does."""
    return _as_it_is if fn is None else fn


disable = allow_in_graph = assume_constant_result = wrap_numpy = _disable_dynamo = _as_it_is


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is."""
    return _as_it_is


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names that `compile` takes; all of them mean that operations run one by one."""
    return [name for name in BACKENDS if "eager" not in name]


def get_default_backend() -> str:
    """Return the name of the default backend of `compile`."""
    return "inductor"


def reset() -> None:
    """Forget what was compiled: nothing."""


def cudagraph_mark_step_begin() -> None:
    """Accept the beginning of a step."""


@contextmanager
def set_stance(stance: str = "default", **kwargs: Any) -> Iterator[None]:
    """Accept how compiled functions shall behave, for a block."""
    yield


__getattr__ = finder("torch.compiler")


set_all(globals())
