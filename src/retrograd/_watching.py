"""The two codes of a public function: the plain one, and the one that asks who takes the call over.

Note [What a mode sees]
As long as nothing in the program takes calls over, public functions have their plain code, which asks nobody or looks at the types
of a few arguments. Whoever takes calls over holds a `Holder`: the entry of a mode, for as long as the mode is in force in any
thread; a proxy of `fx`; a class of tensors, for good. While there is one, every public function has asking code, which
gets its arguments exactly as they were given. The function stays the same object, wherever it was imported to, and its code is all
that is exchanged, so that another thread meets one or the other.

When nobody holds it any more, the next calls bring the plain code back: not the first one, because a program that enters a mode in
every step would exchange all codes twice a step: 200 to 600, 15 to 40 us each time.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from threading import RLock
from types import CodeType, FunctionType
from typing import Any
from weakref import ref

from . import _places, overrides
from ._generated import emit
from ._modes import NO_GRAD, PLAIN, current_mode, read_mode
from ._tracebacks import hide
from .overrides import flat, handle_torch_function, held, unseeing
from .tensor import _base
from .tensor import _tensor as _class
from .tensor._object import overriding as _overriding
from .tensor._recording import unusual_calls as _unusual_calls

PATIENCE = 64  # so many calls that nobody takes over cost about as much as an exchange of all codes
asking = False  # whether public functions have their asking code
_forms: list[tuple[Any, CodeType, CodeType]] = []  # functions with their plain and their asking code
_known: set[Any] = set()
_lock = RLock()
_idle = 0
_walked = False  # over the methods that Tensor has from the beginning


class Holder:
    """What everybody holds who takes calls over; only they do."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> Any:
        return hold, ()  # a copy holds as well


def hold() -> Holder:
    """Have public functions ask, as long as the result is kept."""
    global _idle
    with _lock:
        holder: Holder | None = held[0]()
        if holder is None:
            holder = Holder()
            held[0] = ref(holder)
        _idle = 0
        if not asking:
            _let_ask()
        return holder


def _let_ask() -> None:
    global asking, _walked
    overrides.watching = import_module(__name__)  # from now on, new functions are added at once
    while overrides.noted:
        note(overrides.noted.pop())
    while overrides.made:
        add(*overrides.made.pop())
    if not _walked:
        for value in list(vars(_class.Tensor).values()):
            note(value, by_modes=getattr(value, "__name__", None) in _overriding.METHODS)
        _walked = True
    for function, _, asks in _forms:
        function.__code__ = asks
    _places.may_be_taken_over = True
    asking = True  # last: whoever comes after an interrupt does all of it again


def unneeded() -> None:
    """Be told of a call that nobody took over while there is no holder."""
    global _idle, asking
    _idle += 1
    if _idle < PATIENCE:
        return
    with _lock:
        for function, plain, _ in _forms:
            if held[0]() is not None:  # a mode was entered meanwhile, by what the collector runs
                return _let_ask()
            function.__code__ = plain
        asking, _idle = False, 0
        _places.may_be_taken_over = False


def add(function: Any, plain: CodeType, asks: CodeType) -> None:
    """Receive the two codes of a function."""
    with _lock:
        _forms.append((function, plain, asks))
        function.__code__ = asks if asking else plain


def note(function: Any, by_modes: bool = True) -> None:
    """Receive a public function that asks nobody, and make its asking code. `by_modes`: whether function modes see it."""
    if (
        not isinstance(function, FunctionType)
        or function in _known
        or function.__globals__.get("old_forms") is not None  # made by `overridable`
        or getattr(function, "__wrapped__", None) in _ASKING
    ):
        return
    _known.add(function)
    plain = copy_of(function)
    function.raw = plain  # type: ignore[attr-defined]
    function.__dict__.setdefault("__wrapped__", plain)  # for whoever asks for the signature
    add(function, plain.__code__, _asking_code(function, plain, by_modes and getattr(function, "seen", True)))


_ASKING = (_unusual_calls.of_one_tensor, _unusual_calls.of_two_tensors)


def copy_of(function: FunctionType) -> FunctionType:
    """Return another function that does what this one does now."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    for name in ("__kwdefaults__", "__qualname__", "__annotations__", "__doc__", "__module__"):
        setattr(made, name, getattr(function, name))
    return made


@cache
def _handing_on(free: tuple[str, ...]) -> CodeType:
    """Return code that hands its arguments on, with such free variables.

    A function's new code must have as many as the old. They are true ones, though never read: whoever asks a frame for its
    local variables, as debuggers do, follows them.
    """
    text = f"def make({', '.join(free)}):\n    def call(*args, **kwargs):\n        try:\n            asked = 'asked'\n"
    text += "            return asked(args, kwargs)\n        except Exception as error:\n            hide = 'hide'\n"
    text += "            hide(error)\n            raise\n"
    text += "".join(f"        {name}\n" for name in free) + "    return call"
    made = emit(f"handing on, beside {', '.join(free) or 'nothing'}", text, {})["make"]
    return made(*free).__code__  # type: ignore[no-any-return]


def _asking_code(function: Any, plain: FunctionType, by_modes: bool) -> CodeType:
    """Return the code of a function that asks nobody, for as long as somebody may take its calls over."""
    dispatch_types = _base.dispatch_types

    def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mode = read_mode()
        if (mode is PLAIN or mode is NO_GRAD) and (
            not dispatch_types or (unseeing(map(type, args)) and (not kwargs or unseeing(map(type, kwargs.values()))))
        ):
            if held[0]() is None:
                unneeded()
            return plain(*args, **kwargs)
        mode, relevant = current_mode(), flat(args, kwargs)
        if (by_modes and mode.function_modes) or (
            (mode.dispatch_modes or any(type(one) in dispatch_types for one in relevant))
            and _base.dispatch_layer(".calls").is_operation(function)
        ):
            return handle_torch_function(function, relevant, *args, **kwargs)
        return plain(*args, **kwargs)

    made = _handing_on(plain.__code__.co_freevars)
    consts = tuple({"asked": asked, "hide": hide}.get(one, one) for one in made.co_consts)
    return made.replace(co_name=plain.__code__.co_name, co_consts=consts)
