"""`__torch_function__`: how subclasses and modes take over calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

from ._modes import change_mode, current_mode, set_mode, using


def has_torch_function(values: Iterable[Any]) -> bool:
    """Tell whether any of the values takes calls over."""
    from .tensor._record import overridden

    return any(overridden(value) for value in values)


def _overloaded(values: Iterable[Any]) -> list[Any]:
    """Collect one value per overriding class, subclasses before their parents, else in order."""
    from .tensor._record import overridden

    found: list[Any] = []
    kinds: list[type] = []
    for value in values:
        kind = type(value)
        if kind in kinds or not overridden(value):
            continue
        at = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        found.insert(at, value)
        kinds.insert(at, kind)
    return found


def handle_torch_function(function: Callable[..., Any], relevant: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Call `__torch_function__` of the innermost mode, then of each overriding class, until one answers."""
    relevant = list(relevant)
    types = tuple(type(value) for value in _overloaded(relevant) if type(value).__name__ != "Tensor")
    modes = current_mode().function_modes
    if modes:
        mode = modes[-1]
        previous = change_mode(function_modes=modes[:-1])
        try:
            result = mode.__torch_function__(function, types, args, kwargs)
        finally:
            set_mode(previous)
        if result is not NotImplemented:
            return result
    for value in _overloaded(relevant):
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(function, "__name__", str(function))
    raise TypeError(
        f"no implementation found for 'torch.{name}' on types that implement __torch_function__: {list(types)}"
    )


def is_tensor_like(value: Any) -> bool:
    """Tell whether a value is a Tensor or acts as one."""
    from .tensor._base import Tensor

    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


class TorchFunctionMode:
    """A mode that sees every call; override `__torch_function__(self, func, types, args=(), kwargs=None)`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchFunctionMode: override __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        change_mode(function_modes=(*current_mode().function_modes, self))
        return self

    def __exit__(self, *exc: object) -> None:
        change_mode(function_modes=current_mode().function_modes[:-1])


@contextmanager
def disable_torch_function() -> Any:
    """Run a block in which subclasses do not take calls over."""
    with using(torch_function=False):
        yield


ALIASES = {"axis": "dim", "keepdims": "keepdim"}


def takes_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a public function overridable, and let it write its result into `out=`."""
    return overridable(function, out=True)


def overridable(function: Callable[..., Any], *, out: bool = False) -> Callable[..., Any]:
    """Let subclasses and modes take over a public function; exact Tensors go straight through."""
    from ._modes import NO_GRAD, PLAIN, read_mode
    from .tensor import _base, _out

    known = {
        int,
        float,
        bool,
        str,
        tuple,
        list,
        slice,
        type(None),
    }  # besides Tensor and Parameter: they take nothing over

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for alias, name in ALIASES.items():  # NumPy's words, which torch takes as well
                if alias in kwargs:
                    kwargs[name] = kwargs.pop(alias)
            if out and "out" in kwargs and not has_torch_function(_flat(args, kwargs)):
                target = kwargs.pop("out")
                if target is not None:
                    return _out.call_into(function, args, kwargs, target)
        mode = read_mode()
        if (mode is PLAIN or mode is NO_GRAD) and not _base.overriding_subclasses and args:
            kind = type(args[0])
            if kind is _base.Tensor or kind is _base.Parameter or kind in known:
                if len(args) == 1:
                    return function(*args, **kwargs)
                kind = type(args[1])
                if kind is _base.Tensor or kind is _base.Parameter or kind in known:
                    return function(*args, **kwargs)
        if not has_torch_function(_flat(args, kwargs)):
            return function(*args, **kwargs)
        return handle_torch_function(call, _flat(args, kwargs), *args, **kwargs)

    call.__name__ = function.__name__
    call.__qualname__ = function.__qualname__
    call.__doc__ = function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def _flat(args: Any, kwargs: Any) -> list[Any]:
    flat: list[Any] = []
    for arg in (*args, *kwargs.values()):
        flat.extend(arg) if isinstance(arg, (list, tuple)) else flat.append(arg)
    return flat
