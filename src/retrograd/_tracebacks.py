"""Tracebacks of errors that leave the package: the lines of the user's program, without the package's own.

Note [Tracebacks]
A public function that is called from outside the package catches what is raised in it, calls `hide`, and raises it again. `hide`
takes the package's frames out of `error.__traceback__`. That is the object that scripts, notebooks, pytest, `logging` and
`traceback.print_exc` all print, so none of them has to be told. Frames of the user's that were called by the package (a hook, a
`forward`, a custom backward) stay.

- A successful call pays nothing: Python enters a `try` for free.
- A bare `raise` adds no line of its own, unlike a call that raises. So the `raise` stands in the function that the user called, and
  no frame of the package is left. `guarded` does it for functions whose calls may take 100 ns more; others do it themselves.
- If the caller is the package itself, `hide` leaves the error as it is: a function further out will see to it, and what stands
  between may want to know where the error came from (`is_internal`).
- An error that nobody raised on purpose may be a mistake of the package's. It keeps the line it came from, and no other.

`RETROGRAD_TRACEBACK=full` in the environment, or `debug.full_tracebacks()`, shows everything.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from ._places import is_own

GENERATOR = 0x20  # inspect.CO_GENERATOR
Function = TypeVar("Function", bound=Callable[..., Any])
_full = os.environ.get("RETROGRAD_TRACEBACK", "") == "full"


def shows_all() -> bool:
    """Tell whether tracebacks show the package's own frames."""
    return _full


def show_all(full: bool) -> None:
    """Let tracebacks show the package's own frames, or hide them."""
    global _full
    _full = full


def hide(error: BaseException) -> None:
    """Take the package's frames out of an error's traceback, if the function that calls this was called from outside."""
    if _full:
        return
    caller = sys._getframe(1).f_back
    if caller is not None and is_own(caller.f_code.co_filename):
        return
    shorten(error)


def shorten(error: BaseException) -> None:
    """Take the package's frames out of the traceback of an error, and of those that led to it."""
    if _full:
        return
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = _without_own(one)
        if one.__cause__ is not None:
            one = one.__cause__
            continue
        before = None if one.__suppress_context__ else one.__context__
        if before is not None and before.__traceback__ is not None and id(before) not in seen:
            before.__traceback__ = _without_own(before)
            if _only_own(before.__traceback__):  # how the package came to raise the error is nothing to the user
                one.__suppress_context__ = True
                return
        one = before


def _without_own(error: BaseException) -> TracebackType | None:
    """Return the lines of an error's traceback that are the user's; of one not raised on purpose also that it came from."""
    trace = error.__traceback__
    kept: list[TracebackType] = []
    last_own: TracebackType | None = None  # among the lines after the last of the user's
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_own(file):
            last_own = trace
        elif last_own is None or not _is_used_by_the_package(file):
            kept.append(trace)
            last_own = None
        trace = trace.tb_next
    if last_own is not None and not isinstance(error, (OSError, Warning)) and is_internal(error):
        kept.append(last_own)
    for one, following in zip(kept, [*kept[1:], None], strict=False):
        one.tb_next = following
    return kept[0] if kept else None


def _only_own(trace: TracebackType | None) -> bool:
    while trace is not None:
        if not is_own(trace.tb_frame.f_code.co_filename):
            return False
        trace = trace.tb_next
    return True


_LIBRARIES = re.compile(r"[\\/](numpy|scipy|opt_einsum|ml_dtypes|llvmlite|threadpoolctl|cupy|cupyx)[\\/.]")
_STANDARD = os.path.dirname(os.__file__) + os.sep


def _is_used_by_the_package(file: str) -> bool:
    """Tell whether a file that the package calls belongs to what it is built on, and not to the user."""
    if file.startswith(_STANDARD) and "site-packages" not in file:
        return True
    return file.startswith("<frozen ") or _LIBRARIES.search(file) is not None


_BINDING = r"[\w.<>]+\(\) (takes|missing|got) .*argument"


def is_internal(error: BaseException) -> bool:
    """Tell whether an error comes from Python or NumPy while the package worked, and was not raised on purpose."""
    from opcode import opmap

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or (isinstance(error, TypeError) and re.match(_BINDING, str(error))):
        return False
    code = trace.tb_frame.f_code
    if is_own(code.co_filename):
        return code.co_code[trace.tb_lasti] not in (opmap["RAISE_VARARGS"], opmap["RERAISE"])
    return f"{os.sep}numpy{os.sep}" in code.co_filename


def guarded(function: Function, *more: type[BaseException]) -> Function:
    """Make a public function hide the package's frames when it raises; a call takes about 100 ns more. See Note [Tracebacks].

    `more` are errors that are no `Exception`.
    """
    errors: tuple[type[BaseException], ...] = (Exception, *more)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except errors as error:
            hide(error)
            raise

    return call  # type: ignore[return-value]


GUARDED = guarded(lambda: None).__code__


def guard_methods(cls: type, *names: str) -> None:
    """Make methods of a class hide the package's frames; without names its public ones, and what makes an instance."""
    for name, value in list(vars(cls).items()):
        if name in names or (not names and (name[0] != "_" or name == "__init__")):
            if isinstance(value, FunctionType):
                if value.__code__ is not GUARDED:  # a class of the package may have been seen to when it was made
                    setattr(cls, name, guarded(value))
            elif isinstance(value, (classmethod, staticmethod)) and isinstance(value.__func__, FunctionType):
                setattr(cls, name, type(value)(guarded(value.__func__)))


def guard_own(cls: type, *names: str) -> None:
    """Do what `guard_methods` does if the class is the package's: for `__init_subclass__`."""
    codes = [value.__code__ for value in vars(cls).values() if isinstance(value, FunctionType)]
    if codes and is_own(codes[0].co_filename):
        guard_methods(cls, *names)


def guard_listed(file: dict[str, Any]) -> None:
    """Do what `guard_public` does for the names in a file's `__all__`: the package itself calls the others often."""
    guard_public(file, file["__all__"])


def guard_public(file: dict[str, Any], names: Iterable[str] | None = None, *, methods: bool = False) -> None:
    """Make the public functions that a file defines hide the package's frames, and constructors of its classes, or all methods."""
    for name in list(file) if names is None else names:
        value = file[name]
        if name[0] == "_" or getattr(value, "__module__", None) != file["__name__"]:
            continue
        if isinstance(value, FunctionType) and not value.__code__.co_flags & GENERATOR:
            file[name] = guarded(value)
        elif isinstance(value, type):
            guard_methods(value, *(() if methods else ("__init__",)))
