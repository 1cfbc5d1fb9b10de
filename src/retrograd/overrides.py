"""`__torch_function__`: how subclasses and modes take over calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from ._modes import change_mode, current_mode, set_mode, using
from ._places import own_text

VARARGS = 0x04  # inspect.CO_VARARGS; inspect takes long to import


@cache
def _tensor_layer() -> Any:
    return import_module(".tensor", __package__)  # `from . import tensor` would find the function of that name


def has_torch_function(values: Iterable[Any]) -> bool:
    """Tell whether any of the values takes calls over."""
    overridden = _tensor_layer()._record.overridden
    return any(overridden(value) for value in values)


def _overloaded(values: Iterable[Any]) -> list[Any]:
    """Collect one value per overriding class, subclasses before their parents, else in order."""
    overridden = _tensor_layer()._record.overridden
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
    return isinstance(value, _tensor_layer()._base.Tensor) or hasattr(value, "__torch_function__")


class TorchFunctionMode:
    """A mode that sees every call; override `__torch_function__(self, func, types, args=(), kwargs=None)`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchFunctionMode: override __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        watch_calls()
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


class _Missing:
    """The type of what stands for a required argument that was not given; never among `plain_types`."""


MISSING = _Missing()


def takes_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a public function overridable, and let it write its result into `out=`."""
    return overridable(function, out=True)


def overridable(function: Callable[..., Any], *, out: bool = False) -> Callable[..., Any]:
    """Let subclasses and modes take over a public function; plain Tensors go straight through.

    Note [Forms of a public function]
    As long as nothing in the program takes calls over, a public function is text with the signature of what it wraps:
    a look at the types of its first arguments, and the call (half the time of packing and unpacking `*args`). It is
    written at the first call, so that importing stays quick. The first class or mode that takes calls over gives every
    public function its general form, which hands arguments on exactly as they were given.
    """
    from .tensor._base import plain_types

    defaults = function.__defaults__ or ()
    defaults = (MISSING,) * (function.__code__.co_argcount - len(defaults)) + defaults
    keyword_defaults = {**(function.__kwdefaults__ or {}), **({"out": None} if out else {})}

    def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for alias, name in ALIASES.items():  # NumPy's words, which torch takes as well
            if alias in kwargs:
                kwargs[name] = kwargs.pop(alias)
        if has_torch_function(_flat(args, kwargs)):
            return handle_torch_function(call, _flat(args, kwargs), *args, **kwargs)
        if out and (target := kwargs.pop("out", None)) is not None:
            return _tensor_layer()._out.call_into(function, args, kwargs, target)
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            raise complaint((*args, *kwargs.values()), error) from None

    def complaint(values: tuple[Any, ...], error: AttributeError) -> Exception:
        """Turn the error of an argument that is no Tensor into torch's; any other stays as it is."""
        layer = _tensor_layer()
        for position, (name, value) in enumerate(zip(_parameters(function)[0], values, strict=False), 1):
            if value is error.obj and not isinstance(value, layer._base.Tensor):
                return TypeError(layer._operands.not_a_tensor(function.__name__, position, value, name))
        return error

    def unusual(values: tuple[Any, ...], rest: tuple[Any, ...], named: dict[str, Any]) -> Any:
        args, kwargs = (values + rest, {}) if rest else _as_given(_parameters(function)[0], defaults, values)
        kwargs.update(
            {name: value for name, value in named.items() if value is not keyword_defaults.get(name, MISSING)}
        )
        return general(args, kwargs)

    def first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not plain_types:
            call.__code__ = _in_general.__code__
        else:
            made: dict[str, Any] = {}
            exec(compile(_quick_form(function, out), own_text("public functions"), "exec"), made)
            call.__defaults__, call.__kwdefaults__ = defaults, keyword_defaults
            call.__code__ = made["call"].__code__  # last: another thread may be calling
            _quick.append(call)
        return call(*args, **kwargs)

    names = {"function": function, "plain_types": plain_types, "general": general, "unusual": unusual, "first": first}
    names["complaint"] = complaint
    call: Any = FunctionType(_at_first.__code__, names, function.__name__)
    call.__qualname__ = function.__qualname__
    call.__doc__ = function.__doc__
    call.__module__ = function.__module__
    call.__wrapped__ = function
    call.takes_out = out
    return call  # type: ignore[no-any-return]


_quick: list[Any] = []  # public functions in their quick form
first: Any = None  # what the code of the two forms below finds among the names of each public function
general: Any = None


def _at_first(*args: Any, **kwargs: Any) -> Any:
    return first(args, kwargs)


def _in_general(*args: Any, **kwargs: Any) -> Any:
    return general(args, kwargs)


def watch_calls() -> None:
    """Give every public function its general form. See Note [Forms of a public function]."""
    _tensor_layer()._base.plain_types.clear()
    while _quick:
        call = _quick.pop()
        call.__code__ = _in_general.__code__
        call.__defaults__ = call.__kwdefaults__ = None


def _parameters(function: Any) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """Return the names of positional parameters, of keyword-only ones, and of the sequence that takes the rest."""
    code = function.__code__
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    rest = names[count + keywords] if code.co_flags & VARARGS else None
    return names[:count], names[count : count + keywords], rest


_QUICK_FORM = """
def call({signature}):
    try:
        if {plain}:
            return function({straight})
    except AttributeError as error:  # costs nothing as long as nothing is raised
        raise complaint(({positional}), error)
    return unusual(({positional}), {rest}, {{{named}}}{others})
"""


def _quick_form(function: Any, out: bool) -> str:
    """Write a public function in its quick form."""
    positional, keywords, rest = _parameters(function)
    required = len(positional) - len(function.__defaults__ or ())
    names = (*positional, *keywords)
    aliased = rest is None and any(name in names for name in ALIASES.values())
    others = keywords + (("out",) if out else ())
    # required arguments are looked at, and the second in any case: that may be another tensor, as in max(a, b)
    plain = [f"type({name}) in plain_types" for name in positional[: max(required, 2)]]
    plain += (["out is None"] if out else []) + (["not others"] if aliased else [])
    stars = [f"*{rest}"] if rest else ["*"] if others else []
    return _QUICK_FORM.format(
        signature=", ".join(
            [f"{n}=0" for n in positional] + stars + [f"{n}=0" for n in others] + ["**others"] * aliased
        ),
        plain=" and ".join(plain) or "True",
        straight=", ".join([*positional, *([f"*{rest}"] if rest else []), *(f"{name}={name}" for name in keywords)]),
        positional="".join(f"{name}, " for name in positional),
        rest=rest or "()",
        named=", ".join(f"{name!r}: {name}" for name in others),
        others=" | others" * aliased,
    )


def _as_given(names: tuple[str, ...], defaults: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """Guess which values were given, by position as far as can be: not those at the end that are defaults."""
    count = len(values)
    while count and values[count - 1] is defaults[count - 1]:
        count -= 1
    first = next((k for k in range(count) if values[k] is MISSING), count)
    return values[:first], {names[k]: values[k] for k in range(first, count) if values[k] is not MISSING}


def _flat(args: Any, kwargs: Any) -> list[Any]:
    flat: list[Any] = []
    for arg in (*args, *kwargs.values()):
        flat.extend(arg) if isinstance(arg, (list, tuple)) else flat.append(arg)
    return flat
