"""The operations that torch's dispatcher knows, and the forms they take.

`schemas.txt` has a line for each form, as torch prints it; `~` marks those that torch makes of others before autograd sees them.
Lines with `=` say which forms have one of torch's tags.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import _dtypes
from .._signatures import NUMBERS_AS_TENSORS
from ..tensor import Tensor

_FILE = os.path.join(os.path.dirname(__file__), "schemas.txt")
_CONSTANTS = {"None": None, "True": True, "False": False, "Mean": 1, "contiguous_format": "contiguous_format"}
_PART = re.compile(r"(?:[^,\[(]|\[[^\]]*\]|\([^)]*\))+")
_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?:\((?P<alias>[^)]*)\))?(?P<more>(?:\[\d*\])?\??(?:\[\d*\])?\??)(?: (?P<rest>.*))?"
)


class AliasInfo(NamedTuple):
    """Which memory an argument or a result shares, and whether the operation writes there."""

    before_set: frozenset[str]
    is_write: bool
    after_set: frozenset[str]


class Argument(NamedTuple):
    """An argument or a result of an operation."""

    name: str
    type: str
    default_value: Any
    kwarg_only: bool
    alias_info: AliasInfo | None
    required: bool

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def real_type(self) -> str:
        return self.type.replace("SymInt", "int")

    def has_default_value(self) -> bool:
        return not self.required

    @property
    def N(self) -> int | None:  # noqa: N802 - torch's name
        found = re.search(r"\[(\d+)\]", self.type)
        return int(found[1]) if found else None


class FunctionSchema:
    """One form of an operation: `torch.ops.aten.add.Tensor._schema`."""

    def __init__(
        self, name: str, overload_name: str, arguments: Sequence[Argument], returns: Sequence[Argument], text: str
    ):
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = list(arguments), list(returns)
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def is_mutable(self) -> bool:
        """Tell whether the operation writes into an argument."""
        return any(one.is_write for one in self.arguments)


def parse(text: str) -> FunctionSchema:
    """Read a schema as torch writes it: "ns::name.overload(Tensor x, int n=2) -> Tensor"."""
    found = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.*?)\s*", text, re.DOTALL)
    if found is None:
        raise RuntimeError(
            f"could not read the schema {text!r}\nHint: write it as 'name(Tensor x, int n=2) -> Tensor'."
        )
    name, overload, given, made = found.groups()
    arguments, keyword_only = [], False
    parts = [part.strip() for part in _PART.findall(given) if part.strip()]
    for part in parts:
        if part == "*":
            keyword_only = True
        else:
            arguments.append(_argument(part, keyword_only))
    shown = [
        _with_torchs_number(part, one) for part, one in zip((p for p in parts if p != "*"), arguments, strict=True)
    ]
    if "*" in parts:
        shown.insert(parts.index("*"), "*")
    outer = made[1:-1] if made.startswith("(") else made
    returns = [_argument(part.strip(), False) for part in _PART.findall(outer) if part.strip()]
    full = f"{name}.{overload}" if overload else name
    return FunctionSchema(name, overload or "", arguments, returns, f"{full}({', '.join(shown)}) -> {made}")


def _with_torchs_number(text: str, argument: Argument) -> str:
    """Write an argument with its default as torch prints numbers: "2." for 2.0, others with 17 digits."""
    value, is_float = argument.default_value, argument.type.startswith("float")
    numbers = value if isinstance(value, list) else [value]
    if not any(type(one) is float or (is_float and type(one) is int) for one in numbers):
        return text
    shown = [f"{int(one)}." if abs(one) < 1e10 and one == int(one) else f"{one:.17g}" for one in numbers]
    default = f"[{', '.join(shown)}]" if isinstance(value, list) else shown[0]
    return f"{text.partition('=')[0]}={default}"


def _argument(text: str, keyword_only: bool) -> Argument:
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        raise RuntimeError(f"could not read {text!r} in a schema")
    kind, alias, more, rest = found.group("type", "alias", "more", "rest")
    name, equals, default = (rest or "").partition("=")
    info = None
    if alias is not None:
        before, _, after = alias.partition("->")
        names = frozenset(before.strip().rstrip("!").split("|"))
        info = AliasInfo(names, "!" in before, frozenset(after.split("|")) if after else names)
    value = _value(default) if equals else None
    if isinstance(value, int) and (size := re.fullmatch(r"\[(\d+)\]", more)):
        value = [value] * int(size[1])
    return Argument(name.strip(), kind + more, value, keyword_only, info, not equals)


def _value(text: str) -> Any:
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("["):
        return [_value(part) for part in text[1:-1].split(",") if part.strip()]
    if text[:1] in "\"'":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


@cache
def lines() -> tuple[dict[str, list[str]], frozenset[str]]:
    """Return the lines of each operation, by its name, and the forms that torch makes of others."""
    found: dict[str, list[str]] = {}
    composite = set()
    with open(_FILE, encoding="ascii") as file:
        for line in file.read().splitlines():
            if line.startswith(("#", "=")):
                continue
            text = line.lstrip("~")
            full = text.partition("(")[0]
            forms = found.setdefault(full.partition(".")[0], [])
            if "(" in text:
                forms.append(f"aten::{text}")
                if text != line:
                    composite.add(full)
    return found, frozenset(composite)


@cache
def tags() -> dict[str, list[str]]:
    """Return the names of torch's tags of each form of an operation."""
    found: dict[str, list[str]] = {}
    with open(_FILE, encoding="ascii") as file:
        for line in file:
            if line.startswith("="):
                tag, *forms = line[1:].split()
                for form in forms:
                    found.setdefault(form, []).append(tag)
    return found


@cache
def forms_of(name: str) -> dict[str, FunctionSchema]:
    """Return the forms of one of torch's operations, "default" being the one without a name."""
    read = map(parse, lines()[0].get(name, ()))
    return {one.overload_name or "default": one for one in read}


def is_composite(name: str, overload: str) -> bool:
    """Tell whether torch makes an operation of others before autograd sees it."""
    return (name if overload == "default" else f"{name}.{overload}") in lines()[1]


# ---- which form takes some arguments ----
_KINDS: dict[str, Any] = {
    "int": (int, np.integer),
    "SymInt": (int, np.integer),
    "float": (float, int, np.floating),
    "bool": (bool, np.bool_),
    "Scalar": (bool, int, float, complex, np.generic),
    "str": str,
}


def _fits(value: Any, argument: Argument, numbers: bool) -> bool:
    kind = argument.type
    optional = kind.endswith("?")
    if value is None:
        return optional
    kind = kind.removesuffix("?")
    if kind.endswith("]"):
        base, _, size = kind[:-1].partition("[")
        if isinstance(value, (list, tuple)):
            item = argument._replace(type=base)
            return all(_fits(one, item, False) for one in value)
        return (
            (bool(size) or argument.name in ("size", "dims"))  # by a method, as in x.flip(0)
            and base in _KINDS
            and _fits(value, argument._replace(type=base), False)
        )
    if kind == "Tensor":
        return isinstance(value, Tensor) or (numbers and isinstance(value, (bool, int, float, complex)))
    if kind in ("int", "SymInt"):
        return (isinstance(value, (int, np.integer)) and not isinstance(value, bool)) or _is_whole_tensor(value)
    if kind == "Scalar" and isinstance(value, Tensor):
        return False
    if kind in _KINDS:
        return isinstance(value, _KINDS[kind])
    if kind == "ScalarType":
        return isinstance(value, _dtypes.dtype) or value in (float, int, bool)
    return not isinstance(value, (Tensor, list, tuple))


def _is_whole_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.dim() and not value.requires_grad and not value.is_floating_point()


def _settled(value: Any, argument: Argument) -> Any:
    kind = argument.type.removesuffix("?")
    if value is None:
        return None
    if kind.endswith("]"):
        if isinstance(value, (list, tuple)):
            return list(value)
        return [value] * (argument.N or 1)
    return value


Bound = tuple[list[Any], dict[str, Any]]


def bind(schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments by name, None if the form does not take them."""
    arguments = schema.arguments
    positional = [one for one in arguments if not one.kwarg_only]
    if len(args) > len(positional):
        if positional and positional[-1].type.startswith(("int[", "SymInt[")):
            start = len(positional) - 1
            args = (*args[:start], list(args[start:]))
        else:
            return None
    numbers = schema.name.removeprefix("aten::") in NUMBERS_AS_TENSORS
    values = dict(zip((one.name for one in positional), args, strict=False))
    for name, value in kwargs.items():
        if name in values or (one := _named(arguments, name)) is None:
            return None
        values[one.name] = value
    for one in arguments:
        if one.name not in values:
            if one.required:
                return None
        elif not _fits(values[one.name], one, numbers and one.name == "other"):
            return None
        else:
            values[one.name] = _settled(values[one.name], one)
    return values


WORDS = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self"}


def _named(arguments: Sequence[Argument], name: str) -> Argument | None:
    for wanted in (name, WORDS.get(name)):
        for one in arguments:
            if one.name == wanted:
                return one
    return None


def given(schema: FunctionSchema, values: dict[str, Any]) -> Bound:
    """Return arguments as torch hands them on: by position up to the last that is no default, the rest by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    count = 0
    for one in schema.arguments:
        value = values.get(one.name, one.default_value)
        plain = not one.required and _same(value, one.default_value)
        if not one.kwarg_only:
            args.append(value)
            if not plain:
                count = len(args)
        elif not plain:
            kwargs[one.name] = value
    return args[:count], kwargs


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, Tensor) or isinstance(default, Tensor):
        return False
    if isinstance(value, list) and any(isinstance(one, Tensor) for one in value):
        return False
    if isinstance(value, list) and isinstance(default, int):
        return all(one == default for one in value)
    return (type(value) is type(default) and bool(value == default)) or (value is default)


def resolve(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Choose the form of an operation that takes some arguments: its name, and the arguments by name."""
    best: Any = None
    for overload, schema in forms_of(name).items():
        values = bind(schema, args, kwargs)
        if values is None:
            continue
        rank: tuple[Any, ...] = (
            len(schema.arguments) - len(values),
            not any("Tensor" in one.type for one in schema.arguments[1:]),
        )
        if name in NUMBERS_AS_TENSORS or name.removesuffix("_") in NUMBERS_AS_TENSORS:
            rank = (overload.startswith("Scalar"), *rank)
        if best is None or rank < best[0]:
            best = rank, overload, values
    return None if best is None else best[1:]
