"""torch.compiler: functions as programs of kernels.

`compile` returns a function that gives what another gives: it records what that does to arrays, and runs the record where it has
proved that nothing else would have happened (Note [Compiled calls] in `_compiled.py`). What it cannot prove or record runs in
eager, and `explain` says why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._absent import finder
from .._compiler_settings import Settings as _Settings
from .._modes import read_mode
from .._modes import setting as _setting
from .._public import set_all
from .._tracebacks import guarded as _guarded
from ._guard_filters import (
    keep_portable_guards_unsafe,
    keep_tensor_guards_unsafe,
    skip_all_guards_unsafe,
    skip_guard_on_all_nn_modules_unsafe,
    skip_guard_on_globals_unsafe,
    skip_guard_on_inbuilt_nn_modules_unsafe,
)
from ._registry import INDUCTOR as _INDUCTOR
from ._registry import get_default_backend, list_backends, set_default_backend
from ._registry import lookup_backend as _lookup_backend

config = _Settings(
    allow_unspec_int_on_nn_module=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_key_tag="",
    capture_dynamic_output_shape_ops=False,
    capture_scalar_outputs=False,
    dynamic_sources="",
    fail_on_recompile_limit_hit=False,
    force_disable_caches=False,
    job_id=None,
    recompile_limit=8,
    unbacked_sources="",
    verbose=False,
    wrap_top_frame=False,
)
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
STANCES = ("default", "eager_on_recompile", "eager_then_compile", "fail_on_recompile", "force_eager")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return a function that does what another does, or a module in an `OptimizedModule`, by compiled programs.

    Args:
        model: a function or module; a class, whose objects run compiled; None makes a decorator.
        fullgraph: refuse what would run in eager, with the line that stands in the way.
        dynamic: whether kernels serve all sizes. By default those for the first sizes know them, and those for others do not.
        mode, options: accepted; there is one way to compile.
        backend: a function is given a graph, as a `GraphModule`, and example inputs, and returns what computes it (Note [Backends] in
            `_backends.py`). With another name of torch's than "inductor", the default, operations run one by one.
        disable: return `model` as it is.
        recompile_limit: how many programs there may be; calls that need more run in eager.
        isolate_recompiles: accepted; what is compiled in one call of `compile` never counts for another.

    >>> @torch.compile(backend="eager")  # without the argument it compiles
    ... def slope(x):
    ...     return torch.func.grad(lambda y: (y * y).sum())(x)
    >>> slope(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if shapes_spec is not None:
        raise NotImplementedError(
            "torch.compile: shapes_spec is not implemented\nHint: dynamic=True makes kernels that serve all sizes."
        )
    backend = _lookup_backend(get_default_backend() if backend is None else backend)
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            recompile_limit=recompile_limit,
        )  # fmt: skip
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if disable:
        return model
    from ._compiled import Options, compiled, is_switched_off

    if isinstance(model, type):  # a class that is decorated: its objects run compiled
        name = "forward" if issubclass(model, Module) else "__call__"
        if any(name in vars(cls) for cls in model.__mro__):
            how = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "recompile_limit": recompile_limit}
            setattr(model, name, compile(getattr(model, name), **how))
        return model
    own = None if isinstance(backend, str) else backend
    runs_as_it_is = (own is None and backend != _INDUCTOR) or is_switched_off()
    run = None if runs_as_it_is else compiled(model, fullgraph, Options(dynamic, own, recompile_limit))
    if isinstance(model, Module):
        from ._module import OptimizedModule

        return OptimizedModule(model, run)
    return model if run is None else run


def is_compiling() -> bool:
    """Tell whether the caller is being compiled: a compiled function is recorded.

    Example:
        >>> torch.compiler.is_compiling()
        False
    """
    mode = read_mode()
    return mode is not None and mode.recording is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Tell whether the caller is being exported for a compiler: never."""
    return False


def _as_it_is(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a function as it is; without one, a decorator that does."""
    return _as_it_is if fn is None else fn


allow_in_graph = assume_constant_result = wrap_numpy = _as_it_is


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function that is never compiled: what calls it runs in eager, too.

    Args:
        fn: the function; without one, a decorator is returned
        recursive: accepted
        reason: why, for `explain`

    Example:
        >>> slow = torch.compiler.disable(lambda x: x * 2)
        >>> slow(torch.ones(2))
        tensor([2., 2.])
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not hasattr(fn, "__code__"):
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        mode = read_mode()
        if mode is not None and mode.recording is not None:
            why = "" if reason is None else f": {reason}"
            mode.recording.refuse(f"it calls {fn.__qualname__}, for which torch.compiler.disable was asked{why}")
        return fn(*args, **kwargs)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


_disable_dynamo = disable


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """Return a function as it is, which may stand often in a program: equal parts are compiled once without being told."""
    return nested_compile_region if fn is None else fn


def save_cache_artifacts() -> None:
    """Return nothing: kernels are kept on disk for later processes by themselves."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Return nothing. See `save_cache_artifacts`."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accept that processes shall compile together, and return that they did not: each compiles for itself."""
    return False


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is."""
    return _as_it_is


def reset() -> None:
    """Forget what was compiled."""
    from ._compiled import forget_all

    forget_all()


def cudagraph_mark_step_begin() -> None:
    """Accept the beginning of a step."""


class set_stance(_setting):  # noqa: N801 - torch's name
    """Say how compiled functions shall behave, for a block: `force_eager` runs them as they are, others as usual."""

    def __init__(self, stance: str = "default", **kwargs: Any) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")
        from ._compiled import stance as variable

        super().__init__(variable, stance)


@_guarded
def explain(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Say how a call is compiled: what runs in kernels, what in NumPy, what in eager and why. See `Explanation`."""
    from ._explain import explain as explained

    return explained(function, args, kwargs)


__getattr__ = finder("torch.compiler")


set_all(globals())
