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
from .._modes import read_mode
from .._modes import setting as _setting
from .._public import set_all
from .._tracebacks import guarded as _guarded

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("aot_eager", "cudagraphs", "eager", "inductor", "openxla", "tvm")
STANCES = ("default", "eager_on_recompile", "eager_then_compile", "fail_on_recompile", "force_eager")


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
    """Return a function that does what another does, or a module in an `OptimizedModule`, by compiled programs.

    Args:
        model: a function or module; None makes a decorator.
        fullgraph: refuse what would run in eager, with the line that stands in the way.
        dynamic: whether kernels serve all sizes. By default those for the first sizes know them, and those for others do not.
        mode, options: accepted; there is one way to compile.
        backend: other than "inductor", operations run one by one.
        disable: return `model` as it is.

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
    if isinstance(backend, str) and backend not in BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends.")
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if disable:
        return model
    from ._compiled import compiled, is_switched_off

    runs_as_it_is = backend != "inductor" or is_switched_off()
    if isinstance(model, Module):
        from ._module import OptimizedModule

        return OptimizedModule(model, None if runs_as_it_is else compiled(model, fullgraph, dynamic))
    return model if runs_as_it_is else compiled(model, fullgraph, dynamic)


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


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is."""
    return _as_it_is


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of backends that `compile` takes; all but "inductor" mean that operations run one by one."""
    return [name for name in BACKENDS if "eager" not in name]


def get_default_backend() -> str:
    """Return the name of the default backend of `compile`."""
    return "inductor"


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
