"""Giving methods and functions that look for nothing a form that looks for modes and classes. See Note [Below autograd]."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any

from .._modes import NO_GRAD, PLAIN, current_mode, read_mode
from .._size import Size
from .._watching import copy_of, replace
from ..overrides import NAMESPACES
from ..tensor import Parameter, Tensor, _base, _table
from ..tensor._overriding import seen_method
from . import calls, composites, hidden, schemas

PACKAGE = __package__.partition(".")[0]
PROPERTIES = {
    "T": lambda x: x.permute([*range(x.dim())][::-1]),
    "mT": lambda x: x.transpose(-2, -1),
    "H": lambda x: x.transpose(-2, -1).conj() if x.dim() else x.conj(),
    "mH": lambda x: x.transpose(-2, -1).conj(),
    "data": lambda x: x.detach(),
    "real": lambda x: _package().view_as_real(x).select(x.dim(), 0) if x.is_complex() else x,
    "imag": lambda x: _package().view_as_real(x).select(x.dim(), 1) if x.is_complex() else _package().imag(x),
}


def _package() -> Any:
    return import_module(PACKAGE)


UNSEEING = frozenset((Tensor, Parameter, int, float, bool, str, slice, type(None), Size))
MADE_OF_DATA = ("tensor", "from_numpy")


def _looks_itself(function: Any) -> bool:
    """Tell whether a public function looks for modes and classes already."""
    return (
        hasattr(function, "takes_out")
        or hasattr(function, "ufunc")
        or getattr(function, "watches_dispatch", False)
        or (getattr(getattr(function, "__wrapped__", None), "__name__", "") in ("of_one_tensor", "of_two_tensors"))
    )


def _is_operation(function: Any) -> bool:
    name = calls.name_of(function)
    return name in composites.FOUND or bool(schemas.forms_of(name))


def watch() -> None:
    """Replace what does not look for modes and classes by what does."""
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, FunctionType):
            seen(name, value)
    for name in PROPERTIES:
        setattr(Tensor, name, _property(name, vars(Tensor)[name]))
    _table.install_watching(seen, seen_function)
    for space in NAMESPACES:
        module = import_module(f"{PACKAGE}.{space}" if space else PACKAGE)
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and not name.startswith("_"):
                seen_function(name, value)


def seen(name: str, method: Any) -> Any:
    """Let a method look for modes and classes."""
    in_place = name.endswith("_") and not name.endswith(
        "__"
    )  # those of elementwise operations hand on the operation's attributes
    if name in calls.ANSWERED or not isinstance(method, FunctionType) or (_looks_itself(method) and not in_place):
        return method
    if getattr(method, "watches_dispatch", False):
        return method
    plain = copy_of(method)
    named = seen_method(plain, name)
    named.__wrapped__ = method
    if not _is_operation(named):
        return method

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not kwargs and ((mode := read_mode()) is PLAIN or mode is NO_GRAD):
            for one in args:
                if type(one) not in UNSEEING:
                    break
            else:
                return plain(*args)  # there is nobody to see it
        return named(*args, **kwargs)

    replace(method, plain, answer)
    method.watches_dispatch = True  # type: ignore[attr-defined]
    return method


def seen_function(name: str, function: Any) -> Any:
    """Let a function of the package look for modes and classes."""
    if name in calls.ANSWERED or _looks_itself(function) or not isinstance(function, FunctionType):
        return function
    if name not in MADE_OF_DATA and not (function.__name__ == name and _is_operation(function)):
        return function

    plain = copy_of(function)

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not current_mode().dispatch_modes:
            return plain(*args, **kwargs)
        if name in MADE_OF_DATA:
            with hidden():
                made = plain(*args, **kwargs)
            return composites.fresh(made)
        return calls.call(function, args, kwargs)

    replace(function, plain, answer)
    function.watches_dispatch = True  # type: ignore[attr-defined]
    return function


def _property(name: str, plain: Any) -> property:
    def read(self: Any) -> Any:
        if current_mode().dispatch_modes or type(self) in _base.dispatch_types:
            return PROPERTIES[name](self)
        return plain.__get__(self, type(self))

    return property(read, plain.fset, plain.fdel, plain.__doc__)
