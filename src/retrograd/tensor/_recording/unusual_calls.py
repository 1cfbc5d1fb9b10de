"""Calls of elementwise functions that are not plain: taken over, into `out`, by NumPy's names, or refused."""

from __future__ import annotations

from typing import Any

from ..._modes import current_mode
from ...overrides import ALIASES, MISSING, NOTHING, arguments, handle_torch_function
from .. import _base
from .out import call_into


def overridden(value: Any) -> bool:
    """Tell whether a value's class, or a mode, takes calls over, by `__torch_function__` or by `__torch_dispatch__`."""
    kind = type(value)
    mode = current_mode()
    if kind is _base.Tensor or kind is _base.Parameter:
        return bool(mode.function_modes or mode.dispatch_modes)
    return kind in _base.dispatch_types or by_function(value) or bool(mode.dispatch_modes)


def by_function(value: Any) -> bool:
    """Tell whether a value's class, or a mode, takes calls over by `__torch_function__`."""
    kind = type(value)
    mode = current_mode()
    if kind is _base.Tensor or kind is _base.Parameter:
        return bool(mode.function_modes)
    if not mode.torch_function:
        return False
    function = getattr(kind, "__torch_function__", None)
    return function is not None and function is not _base.disabled_torch_function


def dispatch_override(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hand a call to `__torch_function__`."""
    return handle_torch_function(function, (*args, *kwargs.values()), *args, **kwargs)


def of_one_tensor(input: Any, *, out: Any = None) -> Any:
    """Stand for the signature of what `unary` makes."""


def of_two_tensors(input: Any, other: Any, *, out: Any = None) -> Any:
    """Stand for the signature of what `binary` makes."""


def own_forms(function: Any) -> tuple[str, ...]:
    """Return the forms that what `unary` or `binary` made takes, as in `_signatures.txt`; none for other functions."""
    stands_for = getattr(function, "__wrapped__", None)
    if stands_for is of_one_tensor:
        return ("(Tensor input, *, Tensor out=None)",)
    if stands_for is not of_two_tensors:
        return ()
    numbers = function.__globals__["recipe"].numbers
    kinds = [("Tensor", "Tensor")]
    if numbers != "none":
        kinds.append(("Tensor", "Number"))
    if numbers in ("both", "operator"):
        kinds.append(("Number", "Tensor"))
    return tuple(f"({one} input, {other} other, *, Tensor out=None)" for one, other in kinds)


def unusual_call(call: Any, values: tuple[Any, ...], more: Any, out: Any, words: dict[str, Any]) -> Any:
    """Call an elementwise function into `out`, or by NumPy's names of its arguments; or refuse what torch refuses."""
    given = dict(zip(("input", "other"), values, strict=False))
    count = next((k for k, value in enumerate(values) if value is MISSING), len(values))
    args = values[:count] if more is NOTHING else (*values, more)
    kwargs = {name: value for name, value in list(given.items())[count:] if value is not MISSING}
    kwargs |= {word: value for word, value in words.items() if value is not None}
    if out is not None:
        kwargs["out"] = out
    if any([overridden(value) for value in (*args, *kwargs.values())]):
        return dispatch_override(call, args, kwargs)
    if more is not NOTHING or count < len(values) or [*kwargs] != ["out"] or not isinstance(out, _base.Tensor):
        arguments().check(call, args, kwargs)
        given |= {ALIASES[word]: value for word, value in words.items() if value is not None}
    if out is None:
        return call(**given)
    return call_into(call, tuple(given.values()), {}, out)
