"""torch.jit.isinstance: whether a value is of a type, elements of containers included."""

from __future__ import annotations

import builtins
import types
from typing import Any, Union, get_args, get_origin

from .._tracebacks import guarded

_CONTAINERS = (list, dict, tuple)
_EXAMPLES = {list: "list[int]", dict: "dict[int, int]", tuple: "tuple[int, int]"}


@guarded
def isinstance(obj: Any, target_type: Any) -> bool:
    """Tell whether a value is of a type, such as `list[int]`, or of one of several."""
    if builtins.isinstance(target_type, str) or not (
        builtins.isinstance(target_type, (type, tuple)) or target_type is Any or get_origin(target_type) is not None
    ):
        raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    if builtins.isinstance(target_type, tuple):
        return any(_is(obj, one) for one in target_type)
    return _is(obj, target_type)


def _is(value: Any, kind: Any) -> bool:
    if kind in _CONTAINERS:
        name = kind.__name__
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {_EXAMPLES[kind]}"
        )
    origin, parts = get_origin(kind), get_args(kind)
    if origin is None:
        return builtins.isinstance(value, kind)
    if origin is Union or origin is types.UnionType:
        return any(value is None if one is type(None) else _is(value, one) for one in parts)
    if not builtins.isinstance(value, origin):
        return False
    if origin is dict:
        return all(_is(key, parts[0]) and _is(one, parts[1]) for key, one in value.items())
    if origin is tuple:
        return len(value) == len(parts) and all(_is(one, part) for one, part in zip(value, parts, strict=True))
    return all(_is(one, parts[0]) for one in value)
