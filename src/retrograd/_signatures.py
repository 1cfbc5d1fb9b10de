"""torch's signatures, and its parser of arguments: which form of a function takes them, and what it says if none does."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

# NumPy's words for some parameters, which torch takes as well.
NUMPY_NAMES = {"input": ("x", "a", "x1"), "other": ("x2",), "dim": ("axis",), "keepdim": ("keepdims",)}
# Functions that take a number where they name a Tensor.
_ARITHMETIC = "add div divide mul multiply sub subtract true_divide floor_divide"
NUMBERS_AS_TENSORS = {*_ARITHMETIC.split(), *(f"{name}_" for name in _ARITHMETIC.split()), "to", "copy_"}
SHOWN = {
    "ints": "tuple of ints",
    "floats": "tuple of floats",
    "Numbers": "tuple of Scalars",
    "Tensors": "tuple of Tensors",
    "Tensors_or_Nones": "tuple of Tensors",
    "dtype": "torch.dtype",
    "layout": "torch.layout",
    "device": "torch.device",
    "memory_format": "torch.memory_format",
    "Generator": "torch.Generator",
    "Storage": "torch.Storage",
}
OWN_PACKAGES = (__package__, "torch")  # under the alias our classes say that they are torch's
OWN_TYPES = {name: f"torch.{name}" for name in ("dtype", "device", "layout", "memory_format", "Size")}
OWN_TYPES["Generator"] = "torch._C.Generator"
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: of classes written in Python, which torch names without their module


class Parameter(NamedTuple):
    """One parameter of a form."""

    kind: str
    size: int  # a single number is taken for as many
    takes_none: bool
    name: str
    default: str | None  # as text
    keyword_only: bool
    inside: str = ""  # to which of torch's parsers Python hands it, under which name and in which place

    def shown(self) -> str:
        """Write the parameter as torch's messages do."""
        default = "" if self.default is None else f" = {self.default}"
        return f"{SHOWN.get(self.kind, self.kind)} {self.name}{default}"


class Form(NamedTuple):
    """One of the forms a function takes."""

    parameters: tuple[Parameter, ...]
    old: bool

    @property
    def positional(self) -> int:
        """How many arguments may be given by position."""
        return sum(not one.keyword_only for one in self.parameters)

    @property
    def required(self) -> int:
        """How many arguments must be given."""
        return sum(one.default is None for one in self.parameters)

    def shown(self) -> str:
        """Write the form as torch's messages do."""
        parts: list[str] = []
        for one in self.parameters:
            if one.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(one.shown())
        return f"({', '.join(parts)})"


class Signature(NamedTuple):
    """What is known of a function: who binds its arguments, the name in messages, and the forms it takes."""

    binder: str  # "parser", "python" or "nothing"
    name: str
    forms: tuple[Form, ...]


def _form(text: str) -> Form:
    old = text.startswith("old ")
    parameters, keyword_only = [], False
    for part in re.findall(r"(?:[^,\[{]|\[[^\]]*\]|\{[^}]*\})+", text.removeprefix("old ")[1:-1]):
        part = part.strip()
        if part.startswith("*"):
            keyword_only = True
            if part == "*":
                continue
            parameters.append(Parameter("rest", 0, True, part, "()", True))
            continue
        kind, _, rest = part.partition(" ")
        rest, inner, inside = rest.partition("<")
        name, equals, default = rest.partition("=")
        base, size = re.fullmatch(r"(\w+)(?:\[(\d+)\])?\??", kind).groups()  # type: ignore[union-attr]
        takes_none = kind.endswith("?") or default == "None"
        value = default if equals else None
        parameters.append(Parameter(base, int(size or 0), takes_none, name, value, keyword_only, inner + inside))
    return Form(tuple(parameters), old)


@cache
def table() -> dict[str, str]:
    """Return the lines of each entry, as one text, by the name of a function; a first one after `=` is the name in messages."""
    found: dict[str, str] = {}
    with open(f"{__file__.rpartition('.')[0]}.txt", encoding="utf-8") as file:  # pathlib takes long to import
        text = file.read()
    for entry in text.replace("\n  ", "\0").splitlines():  # the lines of an entry begin with blanks
        names, _, lines = entry.partition("\0")
        if lines:
            found.update(dict.fromkeys(names.split(), lines))
    for key, _, name in [one.partition("=") for one in found if "=" in one]:
        found[key] = f"={name}\0{found[f'{key}={name}']}"
    return found


@cache
def signature(key: str) -> Signature | None:
    """Return what torch takes for the function of a key: a name, or `Tensor.` and a name."""
    entry = table().get(key)
    if entry is None:
        return None
    lines = entry.split("\0")
    name = lines.pop(0)[1:] if entry[0] == "=" else key.rpartition(".")[2]
    if lines[0] in ("python", "nothing"):
        return Signature(lines[0], name, tuple(_form(line) for line in lines[1:]))
    return Signature("parser", name, tuple(_form(line) for line in lines))


def own_signature(name: str, forms: tuple[str, ...]) -> Signature:
    """Return the signature of a function that torch lacks."""
    return Signature("parser", name, tuple(_form(one) for one in forms))


def type_name(value: Any) -> str:
    """Write the type of a value as torch does: with its module if it is written in C and no builtin."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in OWN_PACKAGES and kind.__name__ in OWN_TYPES:
        return OWN_TYPES[kind.__name__]
    written_in_c = not kind.__flags__ & HEAP_TYPE and kind.__module__ != "builtins"
    return f"{kind.__module__}.{kind.__name__}" if written_in_c else kind.__name__


def is_tensor(value: Any) -> bool:
    return isinstance(value, import_module(".tensor._base", __package__).TensorBase)


def tensor_hint(value: Any) -> str:
    """Say how to come from what was given to a tensor, if that is plain."""
    if value is None:
        return "\nHint: None is what a function returns that has no return statement, forward() included."
    if type(value) is tuple and value and is_tensor(value[0]):
        return "\nHint: some layers return more than a tensor, recurrent ones (output, state): pass on the output only."
    if type(value) is list and value and is_tensor(value[0]):
        return "\nHint: torch.stack(list) or torch.cat(list) makes one tensor of several."
    if type(value) is list:
        return "\nHint: torch.tensor(list) makes a tensor of it."
    if type(value) is np.ndarray:
        return "\nHint: torch.from_numpy(array) makes a tensor of it; NumPy's floats are float64, .float() makes them float32."
    return ""


def _element(value: Any) -> Any:
    """Return the dtype's kind of a tensor that may stand for a number: of one element, without gradient; else None."""
    if not is_tensor(value) or value.requires_grad:
        return None
    return "b" if value.dtype.numpy.kind == "b" else "i" if value.dtype.numpy.kind in "iu" else "f"


def _takes_int(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if is_tensor(value):
        return _element(value) in ("i", "b") and value.numel() == 1
    return hasattr(type(value), "__index__") and not isinstance(value, np.ndarray)


def _takes_float(value: Any) -> bool:
    if is_tensor(value):
        return not value.dim() and _element(value) is not None
    return isinstance(value, (int, float, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _takes_number(value: Any) -> bool:
    return _takes_float(value) or isinstance(value, (complex, np.complexfloating))


def _takes_list(value: Any, takes: Any) -> bool:
    return isinstance(value, (tuple, list)) and (not len(value) or takes(value[0]))


def _is_own(value: Any, *names: str) -> bool:
    kind = type(value)
    return kind.__name__ in names and kind.__module__.partition(".")[0] in OWN_PACKAGES


def _fits(one: Parameter, value: Any, number: int, name: str) -> bool:
    """Tell whether a value may be given for a parameter, the number-th of its form."""
    kind = one.kind
    if value is None and one.takes_none:
        return True
    if kind == "Tensor":
        if is_tensor(value) or hasattr(type(value), "__torch_function__"):
            return True
        return name in NUMBERS_AS_TENSORS and not is_tensor(value) and _takes_number(value)
    if kind == "Tensors" or kind == "Tensors_or_Nones":
        if not isinstance(value, (tuple, list)):
            return False
        for at, element in enumerate(value):
            if not is_tensor(element) and not hasattr(type(element), "__torch_function__"):
                raise TypeError(f"expected Tensor as element {at} in argument {number}, but got {type_name(element)}")
        return True
    if kind == "ints":
        return _takes_list(value, _takes_int) or (one.size > 0 and _takes_int(value))
    if kind == "floats":
        return _takes_list(value, _takes_number)
    if kind == "Numbers":
        return isinstance(value, (tuple, list)) and all(_takes_number(element) for element in value)
    if kind == "device":
        return isinstance(value, str) or _is_own(value, "device") or (_takes_int(value) and not is_tensor(value))
    if kind == "dtype":
        return _is_own(value, "dtype") or any(value is kind for kind in (float, int, bool, complex))
    if kind == "Storage":
        return type(value).__name__.endswith("Storage")
    return bool(_SIMPLE[kind](value))


_SIMPLE: dict[str, Any] = {
    "Number": _takes_number,
    "int": _takes_int,
    "float": _takes_float,
    "complex": _takes_number,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "object": lambda value: True,
    "rest": lambda value: True,
    "layout": lambda value: _is_own(value, "layout"),
    "memory_format": lambda value: _is_own(value, "memory_format"),
    "Generator": lambda value: _is_own(value, "Generator"),
    "Stream": lambda value: True,
    "DispatchKeySet": lambda value: True,
}


def _too_many(name: str, form: Form, count: int) -> TypeError:
    most, least = form.positional, form.required
    if least != most:
        return TypeError(f"{name}() takes from {least} to {most} positional arguments but {count} were given")
    plural = "" if most == 1 else "s"
    return TypeError(
        f"{name}() takes {most} positional argument{plural} but {count} {'was' if count == 1 else 'were'} given"
    )


def _missing(name: str, form: Form, at: int) -> TypeError:
    names = [f'"{one.name}"' for one in form.parameters[at:] if one.default is None]
    plural = "s" if len(names) == 1 else ""  # so torch has it
    return TypeError(f"{name}() missing {len(names)} required positional argument{plural}: {', '.join(names)}")


def _surplus(name: str, form: Form, kwargs: dict[str, Any], count: int) -> TypeError:
    names = [one.name for one in form.parameters]
    for given in kwargs:
        if given not in names:
            return TypeError(f"{name}() got an unexpected keyword argument '{given}'")
        if names.index(given) < count:
            return TypeError(f"{name}() got multiple values for argument '{given}'")
    return TypeError("invalid keyword arguments")


def _misfit(name: str, word: str, place: int, kind: str, value: Any) -> TypeError:
    """Return torch's complaint about an argument of another kind; its place is 0 if it was given by its name."""
    where = f" (position {place})" if place else ""
    hint = tensor_hint(value) if kind == "Tensor" else ""
    got = f"not {type_name(value)}{hint}"
    if where and kind == "ints" and isinstance(value, (tuple, list)):
        got = f"but found element of type {type_name(value[0])} at pos 0"
    return TypeError(f"{name}(): argument '{word}'{where} must be {SHOWN.get(kind, kind)}, {got}")


def refused_inside(known: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Return what torch's parsers say about arguments that a function in Python hands to them; None if they take them."""
    for at, one in enumerate(known.forms[0].parameters):
        if not one.inside or (at >= len(args) and one.name not in kwargs):
            continue
        value = args[at] if at < len(args) else kwargs[one.name]
        if one.inside.startswith("<<"):
            value = tuple(value) if hasattr(type(value), "__iter__") else (value,) * 2
        if not _fits(one, value, at, known.name):
            *words, place = one.inside.lstrip("<").split(".")
            name, word = [known.name, one.name][: 2 - len(words)] + words
            return _misfit(name, word, int(place), one.kind, value)
    return None


def mismatch(name: str, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Return why a form does not take the arguments, None if it does. An error raised is one for every form."""
    spread = form.positional == 1 and form.parameters[0].kind == "ints"  # view(2, 3) is view((2, 3))
    count = len(args)
    if count > form.positional and not spread:
        return _too_many(name, form, count)
    at, left = 0, len(kwargs)
    for number, one in enumerate(form.parameters):
        by_name = at >= count
        if not by_name and one.keyword_only:
            return _too_many(name, form, count)
        words = [word for word in (one.name, *NUMPY_NAMES.get(one.name, ())) if word in kwargs] if by_name else []
        if by_name and not words:
            if one.default is None:
                return _missing(name, form, number)
            continue
        value = kwargs[words[0]] if by_name else args[at]
        if not _fits(one, value, number, name):
            first = spread and at == 0 and not by_name
            if first and _takes_list(args, _takes_int):
                at = count
                continue
            if first and count > 1:
                return _too_many(name, form, count)
            return _misfit(name, one.name, 0 if by_name else at + 1, one.kind, value)
        if by_name:
            left -= 1
        else:
            at += 1
    if at < count:
        return _too_many(name, form, count)
    return _surplus(name, form, kwargs, count) if left else None


def _described(parts: list[Parameter | None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Describe the arguments beside a form; what torch takes for misfits, by the names of types, stands between marks."""
    named = [one.name for one in parts[len(args) :] if one is not None and one.name in kwargs]
    shown = []
    for at, (name, value) in enumerate([*(("", value) for value in args), *((key, kwargs[key]) for key in named)]):
        text = f"{name}=" if name else ""
        text += type_name(value)
        if isinstance(value, (tuple, list)):
            inner = ", ".join(type_name(element) for element in value)
            comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
            text += f" of ({inner}{comma})" if isinstance(value, tuple) else f" of [{inner}]"
        one = parts[at] if at < len(parts) else None
        kind = "" if one is None else SHOWN.get(one.kind, one.kind)
        fits = type_name(value) == kind or (kind == "float" and type(value) is int)
        shown.append(text if fits else f"!{text}!")
    return in_brackets(shown, args)


def in_brackets(shown: list[str], args: tuple[Any, ...]) -> str:
    return "(" + ", ".join(shown) + (", " if shown and not args else "") + ")"  # so torch has it


def none_of(known: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """Return torch's list of forms, none of which takes the arguments."""
    name, forms = known.name, [form for form in known.forms if not form.old]
    given = [type_name(value) for value in args] + [f"{key}={type_name(kwargs[key])}" for key in reversed(kwargs)]
    text = f"{name}() received an invalid combination of arguments - got {in_brackets(given, args)}, but expected "
    if len(forms) == 1:
        return TypeError(text + forms[0].shown())
    text += "one of:\n"
    for form in forms:
        text += f" * {form.shown()}\n"
        parts: list[Parameter | None] = list(form.parameters) or [None]  # torch counts one argument of no name
        if form.positional < len(form.parameters):
            parts.insert(form.positional, None)  # torch counts the star
        if len(parts) != len(args) + len(kwargs):
            continue
        names = [one.name for one in parts if one is not None and one.default is None]
        if unknown := [key for key in reversed(kwargs) if key not in names]:
            text += f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
        else:
            described = _described(parts, args, kwargs)
            text += f"      didn't match because some of the arguments have invalid types: {described}\n"
    return TypeError(text)


def _misplaced(name: str, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Return torch's complaint about something else among ints: of a list it looks at the first before it takes the form."""
    for at, one in enumerate(form.parameters):
        value = args[at] if at < len(args) else kwargs.get(one.name)
        if one.kind == "ints" and form.positional == 1 and args and not isinstance(value, (tuple, list)):
            value = args
        if one.kind == "ints" and isinstance(value, (tuple, list)):
            for place, element in enumerate(value, 1):
                if not _takes_int(element) and type(element) is not bool:  # a bool at the first place is refused before
                    return TypeError(
                        f"{name}(): argument '{one.name}' failed to unpack the object at pos {place} with error \"type must be "
                        f'tuple of ints,but got {type_name(element)}"'
                    )
    return None


def parsed(known: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Return what torch's parser says about a call, None if it takes the arguments."""
    try:
        reasons = []
        for form in known.forms:
            reason = mismatch(known.name, form, args, kwargs)
            if reason is None:
                return _misplaced(known.name, form, args, kwargs)
            reasons.append(reason)
    except TypeError as error:
        return error
    if len(reasons) == 1:
        return reasons[0]
    count = len(args) + len(kwargs)
    plausible = [
        reason
        for form, reason in zip(known.forms, reasons, strict=True)
        if form.required <= count <= len(form.parameters) and not form.old
    ]
    if len(plausible) == 1:
        return plausible[0]
    return none_of(known, args, kwargs)
