"""The signature of a scripted or traced function: what it takes, and torch's words for what it does not take."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ..tensor import Tensor

NOTHING = inspect.Parameter.empty
NUMBERS: dict[Any, tuple[type, ...]] = {
    int: (int,),
    float: (float, int),
    bool: (bool,),
    str: (str,),
    complex: (complex, float, int),
}


@dataclass(frozen=True)
class Argument:
    """One parameter: its name, its type, whether the program wrote that type, and its default."""

    name: str
    kind: Any
    is_written: bool = True
    default: Any = NOTHING

    def __str__(self) -> str:
        default = "" if self.default is NOTHING else f"={_constant(self.default)}"
        return f"{type_name(self.kind)} {self.name}{default}"


@dataclass(frozen=True)
class Schema:
    """The signature of a function. Its text is torch's."""

    name: str
    arguments: tuple[Argument, ...]
    returns: Any = Any
    owner: str | None = None  # the class of `self`, for a method

    def __str__(self) -> str:
        own = [] if self.owner is None else [f"__torch__.{self.owner} self"]
        return f"{self.name}({', '.join([*own, *map(str, self.arguments)])}) -> {type_name(self.returns)}"

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Return a value for each parameter, or raise torch's error."""
        offset = self.owner is not None
        if len(args) > len(self.arguments):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self.arguments) + offset} argument(s) but received "
                f"{len(args) + len(kwargs) + offset} argument(s). Declaration: {self}"
            )
        values, rest = [], dict(kwargs)
        for position, argument in enumerate(self.arguments):
            if position < len(args):
                value = args[position]
            elif argument.name in rest:
                value = rest.pop(argument.name)
            elif argument.default is not NOTHING:
                value = argument.default
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
            if not fits(value, argument.kind):
                raise self._unfit(argument, value, position + offset)
            values.append(float(value) if argument.kind is float and type(value) is int else value)
        if rest:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(rest))}' for operator '{self.name}'. Schema: {self}"
            )
        return values

    def _unfit(self, argument: Argument, value: Any, position: int) -> RuntimeError:
        expected = type_name(argument.kind) + ("" if argument.is_written else " (inferred)")
        lines = [
            f"{self.name}() Expected a value of type '{expected}' for argument '{argument.name}' but instead found type "
            f"'{type(value).__name__}'."
        ]
        if not argument.is_written:
            lines.append(
                f"Inferred '{argument.name}' to be of type 'Tensor' because it was not annotated with an explicit type."
            )
        return RuntimeError("\n".join([*lines, f"Position: {position}", f"Value: {value}", f"Declaration: {self}"]))


def of_function(function: Callable[..., Any], name: str, owner: str | None = None) -> Schema | None:
    """Read the signature of a function; None if it takes any number of arguments, which scripted functions do not."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())[owner is not None :]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    hints = _hints(function)
    if hints is None:
        return None
    arguments = tuple(Argument(p.name, hints.get(p.name, Tensor), p.name in hints, p.default) for p in parameters)
    return Schema(name, arguments, hints.get("return", Any), owner)


def _hints(function: Callable[..., Any]) -> dict[str, Any] | None:
    function = inspect.unwrap(getattr(function, "__func__", function))
    if getattr(function, "__module__", "").partition(".")[0] in ("retrograd", "__torchscript__"):
        return None  # the library's own modules check what they take; text of a file was checked by its compiler
    try:
        known = inspect.getclosurevars(function).nonlocals if getattr(function, "__closure__", None) else {}
        return typing.get_type_hints(function, localns=dict(known))
    except Exception:  # a name that is not there at run time
        return None


def fits(value: Any, kind: Any) -> bool:
    """Tell whether a parameter of a type takes a value; types that are not plain take all."""
    if kind is None or kind is type(None):
        return value is None
    if isinstance(kind, type) and issubclass(kind, Tensor):
        return hasattr(type(value), "__torch_function__")
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) or (kind is not str and hasattr(type(value), "__torch_function__"))
    if typing.get_origin(kind) in (Union, types.UnionType):
        return any(fits(value, one) for one in typing.get_args(kind))
    return True


def type_name(kind: Any) -> str:
    """Write a type as torch's signatures do."""
    if kind is None or kind is type(None):
        return "NoneType"
    if isinstance(kind, type) and issubclass(kind, Tensor):
        return "Tensor"
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        others = [one for one in parts if one is not type(None)]
        if len(others) == 1:
            return f"{type_name(others[0])}?"
        return f"Union({', '.join(map(type_name, parts))})"
    if origin is list:
        return f"{type_name(parts[0])}[]"
    if origin is tuple:
        return f"({', '.join(map(type_name, parts))})"
    if origin is dict:
        return f"Dict({', '.join(map(type_name, parts))})"
    return getattr(kind, "__name__", str(kind))


def _constant(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{int(value)}."
    return f'"{value}"' if isinstance(value, str) else str(value)
