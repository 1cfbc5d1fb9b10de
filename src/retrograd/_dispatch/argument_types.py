"""Whether values are of the types that the schema of a program's operation names, and what its kernel gets of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .._device import device as device_type
from .._dtypes import dtype as dtype_type
from ..tensor import Tensor

DETAILS = "to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
NO_TRUTH = (str, list, tuple, dict, dtype_type, device_type)


class Unfit(Exception):  # noqa: N818 - it is caught where an error can be made of it
    """A value is not of a type; the text is torch's."""


def _unfit(value: Any) -> Unfit:
    shown = str(type(value)).replace(f"{__package__.partition('.')[0]}.", "torch.")
    return Unfit(f"Unable to cast Python instance of type {shown} {DETAILS}")


def _tensor(value: Any) -> Any:
    if not isinstance(value, Tensor):
        raise Unfit(f"Unable to cast {value} to Tensor")
    return value


def _plain(value: Any) -> Any:
    """Return the number of a tensor that has one, and Python's number for one of NumPy's; anything else as it is."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise _unfit(value)
        return value.item()
    return value.item() if isinstance(value, np.generic) else value


def _int(value: Any) -> Any:
    plain = _plain(value)
    if hasattr(plain, "__index__"):
        return int(plain) if isinstance(plain, bool) else plain
    if plain is value or not isinstance(plain, float):
        raise _unfit(value)
    return int(plain)


def _float(value: Any) -> Any:
    plain = _plain(value)
    if not hasattr(plain, "__float__") and not hasattr(plain, "__index__"):
        raise _unfit(value)
    return float(plain) if type(plain) in (bool, int) else plain


def _bool(value: Any) -> Any:
    plain = _plain(value)
    if isinstance(plain, NO_TRUTH):
        raise _unfit(value)
    return bool(plain) if plain is None or type(plain) in (int, float, complex) else plain


def _str(value: Any) -> Any:
    if not isinstance(value, str):
        raise _unfit(value)
    return value


def _scalar(value: Any) -> Any:
    is_number = hasattr(value, "__index__") or hasattr(value, "__float__") or isinstance(value, complex)
    if isinstance(value, Tensor) or not is_number:
        raise Unfit(f"Cannot cast {repr(value) if isinstance(value, Tensor) else value} to number")
    return value


def _dtype(value: Any) -> Any:
    return value if isinstance(value, dtype_type) else _int(value)


def _device(value: Any) -> Any:
    if isinstance(value, str):
        return device_type(value)
    if not isinstance(value, device_type):
        raise _unfit(value)
    return value


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Tensor": ("Tensor", _tensor),
    "int": ("int", _int),
    "SymInt": ("int", _int),
    "float": ("float", _float),
    "bool": ("bool", _bool),
    "str": ("str", _str),
    "Scalar": ("number", _scalar),
    "ScalarType": ("int", _dtype),
    "Device": ("Device", _device),
}


@cache
def cast_to(kind: str) -> tuple[str, Callable[[Any], Any]]:
    """Return what torch calls a schema's type in errors, and what casts values to it; types not known here take anything."""
    if kind.endswith("?"):
        shown, inner = cast_to(kind[:-1])
        return f"Optional[{shown}]", lambda value: None if value is None else inner(value)
    listed = re.fullmatch(r"(.*)\[(\d*)\]", kind)
    if listed is None:
        return KINDS.get(kind, (kind, lambda value: value))
    shown, inner = cast_to(listed[1])
    return f"List[{shown}]", lambda value: _list(value, inner, int(listed[2] or 0))


def _whole(value: Any) -> Any:
    """Return a whole number in a list, where torch cuts off no fraction."""
    if isinstance(value, Tensor) and value.is_floating_point():
        raise _unfit(value)
    return _int(value)


def _list(value: Any, inner: Callable[[Any], Any], count: int) -> Any:
    if count and not isinstance(value, (list, tuple, str)):
        return [inner(value)] * count  # one number stands for all
    if inner is _int:
        try:
            return [_whole(one) for one in value]
        except TypeError as error:
            raise Unfit(f"\n Python error details: TypeError: {error}") from None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _unfit(value)
    try:
        return [inner(one) for one in value]
    except Unfit:
        raise _unfit(value) from None


def cast_argument(schema: Any, at: int, value: Any) -> Any:
    """Return what the kernel gets of an argument's value; refuse one of another type in torch's words."""
    argument = schema.arguments[at]
    shown, cast = cast_to(argument.type)
    try:
        return cast(value)
    except Unfit as why:
        details = str(why) if str(why).startswith("\n") else f"\nCast error details: {why}"
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{shown}' for argument '{argument.name}' but instead found type "
            f"'{type(value).__name__}'.\nPosition: {at}\nValue: {value!r}\nDeclaration: {schema}{details}"
        ) from None


def cast_result(schema: Any, result: Any) -> Any:
    """Return what a kernel has returned as what the schema says; refuse anything else in torch's words."""
    returns = schema.returns
    if not returns:
        if result is not None:
            raise RuntimeError(
                f"Expected PythonKernelHolder for {schema.name} to return None but it returned something else instead."
            )
        return None
    try:
        if len(returns) == 1:
            return None if result is None else cast_to(returns[0].type)[1](result)
        if not isinstance(result, (tuple, list)):
            raise TypeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
        if len(result) != len(returns):
            raise RuntimeError(
                f"{schema.name}: the kernel returned {len(result)} values, the schema has {len(returns)}"
            )
        return tuple(
            None if value is None else cast_to(one.type)[1](value) for one, value in zip(returns, result, strict=True)
        )
    except Unfit as why:
        raise RuntimeError(str(why)) from None


__all__ = ["cast_argument", "cast_result"]
