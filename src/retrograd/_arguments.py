"""Arguments that torch refuses, and its words for them.

Note [Refusals]
A public function does not look at its arguments before it works: a plain call pays nothing. Only when something was raised
does `refusal` read the function's signatures (`_signatures.txt`) and bind the arguments as torch's parser does, which refuses
before anything else happens. If it refuses, its words take the place of what was raised. Functions that would accept what
torch refuses ask `check` themselves, on a way that plain calls do not take.
"""

from __future__ import annotations

import re
import sys
from ast import literal_eval
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ._places import user_frame
from ._signatures import (
    NUMBERS_AS_TENSORS,
    NUMPY_NAMES,
    Form,
    Signature,
    is_tensor,
    mismatch,
    own_signature,
    parsed,
    refused_inside,
    signature,
    table,
    type_name,
)
from ._tracebacks import is_internal


def check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise torch's error for arguments that it refuses. `function` is a public function, called just now."""
    reason: Exception | None = _refused(function, args, kwargs, user_frame(sys._getframe(1)))
    if reason is not None:
        raise reason


def taken(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Run `check`, and return the arguments; tensors and NumPy scalars that stand for numbers become numbers."""
    check(function, args, kwargs)
    as_function, as_method = signatures_of(function)
    for values, named in _variants(function, args, kwargs):
        for known, own in ((as_function, 0), (as_method, 1)):
            if known is None or known.binder == "nothing" or (own and not (values and is_tensor(values[0]))):
                continue
            before = own if known.binder == "parser" else 0  # Python counts the tensor
            for form in known.forms:
                if mismatch(known.name, form, values[before:], named) is None:
                    return _as_numbers(form, values, before, named)
    return args, kwargs


def _variants(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return how a call may have been written: as it seems, and with all that has a default by name, except for the defaults.

    The quick form of a public function does not know which of its arguments were given, and how.
    """
    found = [(args, kwargs)]
    written = getattr(function, "__wrapped__", function)
    names, defaults = written.__code__.co_varnames[: written.__code__.co_argcount], written.__defaults__ or ()
    required = len(names) - len(defaults)
    if required < len(args) <= len(names) and not written.__code__.co_flags & VARARGS:
        given = zip(names[required:], args[required:], defaults, strict=False)
        moved = {name: value for name, value, default in given if value is not default}
        found.append((args[:required], {**moved, **kwargs}))
    return found


def _as_numbers(
    form: Form, args: tuple[Any, ...], own: int, kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    values = list(args)
    named = dict(kwargs)
    for at, one in enumerate(form.parameters):
        if one.kind not in ("int", "float", "Number", "ints"):
            continue
        if at + own < len(values):
            values[at + own] = _number(values[at + own])
            continue
        for word in (one.name, *NUMPY_NAMES.get(one.name, ())):
            if word in named:
                named[word] = _number(named[word])
    return tuple(values), named


def _number(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        made = [_number(element) for element in value]
        same = all(one is other for one, other in zip(value, made, strict=True))
        return value if same or type(value) not in (tuple, list) else type(value)(made)
    return value.item() if isinstance(value, np.generic) or is_tensor(value) else value


def refusal(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> BaseException | None:
    """Return what torch says about a call of a public function that raised an error; None if the error says it itself."""
    if isinstance(error, Warning) or error.__traceback__ is None:
        return None
    reason: Exception | None = _refused(function, args, kwargs, user_frame(error.__traceback__.tb_frame), error)
    internal = isinstance(error, MemoryError) or is_internal(error)
    if reason is None and internal and _file(function) not in FILES and not with_numbers(function, args, kwargs):
        reason = _about_the_call(function, args, kwargs, error)
        reason.__cause__ = error
    return reason


FILES = ("loading", "saving", "generators")  # where errors are about other things than arguments


def _file(function: Any) -> str:
    """Return the name of the file in which a public function is written."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return str(function.__globals__["__name__"].rpartition(".")[2])


_TOO_LARGE = "array is too big|Maximum allowed dimension|Unable to allocate"


def _about_the_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> Exception:
    """Return an error that says in which call something inside went wrong, and what it was given.

    Where torch has Python code as we have, Python's own words about an argument are often the same; they stay the first ones.
    """
    name = function.__name__
    if isinstance(error, OverflowError):
        return RuntimeError(f"{name}(): a number among the arguments is out of range: {error}")
    if isinstance(error, MemoryError) or re.search(_TOO_LARGE, str(error)):
        return RuntimeError(f"{name}(): DefaultCPUAllocator: can't allocate memory: {error}")
    kinds = (TypeError, ValueError, IndexError, ZeroDivisionError, RuntimeError)
    kind = next((one for one in kinds if isinstance(error, one)), TypeError)
    if re.match(_PYTHONS, str(error)):
        return kind(str(error))
    shown = [_in_short(value) for value in args] + [f"{key}={_in_short(value)}" for key, value in kwargs.items()]
    words = f"{name}(): {UNFIT} - got ({', '.join(shown)})"
    if is_bound_by_python(function) and isinstance(error, kinds) and not re.search(_OURS, str(error)):
        return kind(f"{error}\nHint: {words}.")
    return kind(f"{words}: {error}")


_PYTHONS = "must be real number, not |'complex' object cannot be interpreted"  # torch's words too, of data
_OURS = "_array|not supported between|numpy|ndarray|broadcast together|truth value"
UNFIT = "the arguments do not go together"


def _in_short(value: Any) -> str:
    """Write the type of a value, of a tensor its shape as well, of a number what it is."""
    if is_tensor(value):
        return f"Tensor{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{type_name(value)} of ({', '.join(map(_in_short, value[:4]))}{', ...' if len(value) > 4 else ''})"
    return repr(value) if value is None or isinstance(value, (bool, int, float, complex)) else type_name(value)


def with_numbers(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call that raised with numbers for what stands for numbers; None if nothing does."""
    values, named = taken(function, args, kwargs)
    given, made = [*args, *kwargs.values()], [*values, *named.values()]
    if len(given) == len(made) and all(one is other for one, other in zip(given, made, strict=True)):
        return None
    return (values, named) if len(given) == len(made) else None


def _refused(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType, error: BaseException | None = None
) -> TypeError | None:
    """Return what torch says about a call; of a function that is a method as well, what it says about either."""
    as_function, as_method = signatures_of(function)
    in_python = (as_function or as_method or _UNKNOWN).binder == "python"
    if in_python and error is not None and not is_internal(error):
        return None
    at = _instruction(frame)
    args, kwargs = _by_name(function, args, kwargs, _keywords(frame, at))
    reasons = []
    for known, own in ((as_function, 0), (as_method, 1)):
        if known is None or (own and not (args and is_tensor(args[0]))):
            continue
        some = [
            _reason(known, values if known.binder == "python" else values[own:], named, error)
            for values, named in _variants(function, args, kwargs)
        ]
        if None in some:
            return None
        reasons.append(some[0])
    if not reasons:
        return None
    return reasons[len(reasons) > 1 and _is_method_call(frame, at, function.__name__)]


def _reason(
    known: Signature, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException | None
) -> TypeError | None:
    """Return why torch refuses a call by a signature, None if it does not."""
    if known.binder == "nothing":
        return _takes_nothing(known.name, args, kwargs)
    if known.binder == "python":
        inside = refused_inside(known, args, kwargs)
        if inside is not None or error is None:
            return inside
    return parsed(known, args, kwargs)


_UNKNOWN = Signature("parser", "", ())


def _takes_nothing(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    if kwargs:
        return TypeError(f"TensorBase.{name}() takes no keyword arguments")
    return TypeError(f"TensorBase.{name}() takes no arguments ({len(args)} given)") if args else None


@cache
def _owners() -> dict[str, str]:
    """Return the file of every function of the package."""
    names = import_module(".tensor._names", __package__)
    families = (*names.NOW.items(), *names.LATER.items())
    return {name: module for module, some in families for name in f"{some.both} {some.functions}".split()}


@cache
def _spread() -> set[str]:
    """Return the names of functions that have a method of their own, one that takes sizes one by one."""
    names = import_module(".tensor._names", __package__)
    return {name for some in (*names.NOW.values(), *names.LATER.values()) for name in some.spread.split()}


@cache
def keys_of(function: Any) -> tuple[str, str]:
    """Return under which keys of the table a public function is to be found: as a function and as a method."""
    written = function
    while hasattr(written, "__wrapped__"):
        written = written.__wrapped__
    name, file = function.__name__, written.__globals__["__name__"]
    if hasattr(function, "is_method"):
        return "", f"Tensor.{name}"
    if name in _spread():
        return name, ""  # its method is another object
    functional = sys.modules.get(f"{__package__}.nn.functional") if ".nn." in file else None
    if f"nn.functional.{name}" in table() and getattr(functional, name, None) is function:
        return f"nn.functional.{name}", f"Tensor.{name}"
    owner = _owners().get(name)
    if owner is None or (owner.rpartition(".")[2] != file.rpartition(".")[2] and not file.endswith(".record")):
        for space in ("linalg", "fft", "special"):
            if f"{space}_{name}" in table():
                return f"{space}_{name}", f"Tensor.{name}"
    return name, f"Tensor.{name}"


@cache
def signatures_of(function: Any) -> tuple[Signature | None, Signature | None]:
    """Return what a public function takes, as a function and as a method: what torch's takes; if torch has none, its own forms."""
    as_function, as_method = (signature(key) for key in keys_of(function))
    if as_function is None and as_method is None:
        forms = import_module(".tensor._recording.unusual_calls", __package__).own_forms(function)
        if forms:
            return own_signature(function.__name__, forms), None
    return as_function, as_method


def as_handed_over(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as torch hands them to `__torch_function__`.

    Functions of torch.nn.functional that are written in Python hand over those with a default by keyword, all of them; others
    hand over what they were given.
    """
    defaults = _handed_by_keyword(function)
    if defaults is None:
        return args, kwargs
    names, given = list(defaults), {**dict(zip(defaults, args, strict=False)), **kwargs}
    required = [name for name in names if defaults[name] is REQUIRED]
    if len(args) > len(names) or given.keys() - defaults.keys() or not all(name in given for name in required):
        return args, kwargs  # not a call that it takes
    by_keyword = {name: given.get(name, default) for name, default in defaults.items() if default is not REQUIRED}
    return tuple(given[name] for name in required), by_keyword


REQUIRED = object()


@cache
def _handed_by_keyword(function: Any) -> dict[str, Any] | None:
    key = keys_of(function)[0]
    known = signature(key) if key.startswith("nn.functional.") else None
    if known is None or known.binder != "python" or any(one.kind == "rest" for one in known.forms[0].parameters):
        return None
    return {
        one.name: REQUIRED if one.default is None else literal_eval(one.default) for one in known.forms[0].parameters
    }


@cache
def plain_kinds(function: Any) -> dict[str, tuple[type, ...] | None]:
    """Return by parameter the types that torch surely takes there in some form; None where it is not a matter of types."""
    tensors = import_module(".tensor._base", __package__)
    as_function, as_method = signatures_of(function)
    known = as_function or as_method
    if known is None or known.binder == "nothing":
        return {}
    sized = import_module("._size", __package__).Size
    devices = import_module("._device", __package__)
    number = (int, float, bool, complex)
    types = {
        "Tensor": (tensors.Tensor, tensors.Parameter, *(number if known.name in NUMBERS_AS_TENSORS else ())),
        "Tensors": (tuple, list),
        "ints": (tuple, list, sized),
        "Number": number,
        "int": (int,),
        "float": (float, int, bool),
        "bool": (bool,),
        "str": (str,),
        "dtype": (import_module("._dtypes", __package__).dtype,),
        "device": (str, int, devices.device),
        "layout": (type(devices.strided),),
        "memory_format": (type(devices.preserve_format),),
    }
    found: dict[str, tuple[type, ...] | None] = {}
    if as_function is None and known.binder == "parser":
        found["self"] = types["Tensor"]
    both = [one for one in (as_function, as_method) if one is not None]
    for binder, form in [(one.binder, form) for one in both for form in one.forms]:
        for one in form.parameters:
            some = types.get(one.kind) if binder == "parser" or one.inside else None
            before = found.get(one.name, ())
            if some is None or before is None:
                found[one.name] = None
                continue
            some += (int,) if one.kind == "ints" and one.size else ()
            some += (type(None),) if one.takes_none else ()
            found[one.name] = tuple(dict.fromkeys(before + some))
    return found


def has_several(function: Any) -> bool:
    """Tell whether torch has several forms of a function, which it lists when it refuses arguments."""
    known = [one for one in signatures_of(function) if one is not None and one.binder == "parser"]
    return any(len([form for form in one.forms if not form.old]) > 1 for one in known)


def is_bound_by_python(function: Any) -> bool:
    """Tell whether torch writes a function in Python, where NumPy's words are not known."""
    as_function, as_method = signatures_of(function)
    return (as_function or as_method or _UNKNOWN).binder != "parser" or not (as_function or as_method)


# ---- how a call was written ----
def _instruction(frame: FrameType) -> list[Any]:
    """Return the instructions of a frame up to the call at which it stands; none if they cannot be read."""
    import dis

    try:
        return [one for one in dis.get_instructions(frame.f_code) if one.offset <= frame.f_lasti]
    except Exception:  # code that somebody has made
        return []


def _keywords(frame: FrameType, instructions: list[Any]) -> tuple[str, ...]:
    """Return the names by which a call gives arguments, as far as its instructions tell."""
    for one in instructions[-3:]:
        if one.opname == "KW_NAMES" or (one.opname == "LOAD_CONST" and instructions[-1].opname == "CALL_KW"):
            names = frame.f_code.co_consts[one.arg]
            if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
                return names
    return ()


def _by_name(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], words: tuple[str, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Undo the guess that arguments were given by position, for the words that say otherwise."""
    written = getattr(function, "__wrapped__", function)
    names, defaults = written.__code__.co_varnames[: written.__code__.co_argcount], written.__defaults__ or ()
    first = next((k for k in range(len(args)) if k < len(names) and names[k] in words), len(args))
    moved = dict(zip(names[first:], args[first:], strict=False))
    if words and moved.keys() <= {*words}:
        required = len(names) - len(defaults)
        while required < first <= len(names) and args[first - 1] is defaults[first - 1 - required]:
            first -= 1
        given = {**moved, **kwargs}
        args, kwargs = args[:first], {word: given[word] for word in words if word in given}
        kwargs |= {name: value for name, value in given.items() if name not in kwargs}
    return args, kwargs


def _is_method_call(frame: FrameType, instructions: list[Any], name: str) -> bool:
    """Tell whether the call at which a frame stands is one of a method, as in `x.add(1)`, not one of a module's function."""
    if not instructions or instructions[-1].positions is None:
        return False
    start = instructions[-1].positions[0], instructions[-1].positions[2]
    for k in range(len(instructions) - 2, 0, -1):
        one = instructions[k]
        is_load = one.opname in ("LOAD_METHOD", "LOAD_ATTR") and one.argval == name and one.positions is not None
        if is_load and (one.positions[0], one.positions[2]) == start:
            return not _is_module(frame, instructions[:k])
    return False


def _is_module(frame: FrameType, before: list[Any]) -> bool:
    """Tell whether the last instructions of a list put a module on the stack."""
    names: list[str] = []
    for one in reversed(before):
        if one.opname == "LOAD_ATTR":
            names.insert(0, one.argval)
        elif one.opname.startswith("LOAD_") and isinstance(one.argval, str):
            value = frame.f_locals.get(one.argval, frame.f_globals.get(one.argval))
            for name in names:
                value = getattr(value, name, None)
            return isinstance(value, ModuleType)
        elif one.opname not in ("CACHE", "EXTENDED_ARG", "PRECALL"):
            return False
    return False


VARARGS = 0x04  # inspect.CO_VARARGS
