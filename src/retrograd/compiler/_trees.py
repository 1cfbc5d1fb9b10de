"""What a compiled function is given and gives: tensors inside tuples, lists and dictionaries, and constants beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._dtypes import dtype as torch_dtype
from .._size import Size
from ..tensor._functions.generators import Generator
from ..tensor._recording.flat import EXACT

CONSTANTS = frozenset({int, bool, str, bytes, float, complex, type(None), type(Ellipsis), torch_dtype, Size})


class Kept:
    """Something that is the very same in every call."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class UnknownError(Exception):
    """A structure holds what cannot be guarded or made again; `is_result` tells of one that is returned."""

    def __init__(self, reason: str, is_result: bool = False) -> None:
        super().__init__(reason)
        self.is_result = is_result


def leaves(tree: Any, path: str, found: list[tuple[str, Any]], facts: list[tuple[str, str, Any]]) -> None:
    """List the tensors of a structure by the expressions that lead to them, and the facts about the rest: (expression, kind, value)."""
    kind = type(tree)
    if kind in EXACT:
        found.append((path, tree))
    elif kind in (tuple, list):
        facts.append((path, "sequence", (kind, len(tree))))
        for at, one in enumerate(tree):
            leaves(one, f"{path}[{at}]", found, facts)
    elif kind is dict:
        if not all(type(name) in (str, int) for name in tree):
            raise UnknownError("a dictionary whose keys are not strings")
        facts.append((path, "dict", tuple(tree)))
        for name, one in tree.items():
            leaves(one, f"{path}[{name!r}]", found, facts)
    elif kind is Generator:
        facts.append((path, "generator", tree))
    elif kind in CONSTANTS:
        facts.append((path, "constant", tree))
    else:
        raise UnknownError(f"an argument of type {kind.__name__}")


def is_known(tree: Any) -> bool:
    """Tell whether a structure holds only what can be guarded and made again."""
    try:
        leaves(tree, "", [], [])
    except UnknownError:
        return False
    return True


def check_lines(facts: list[tuple[str, str, Any]], scope: dict[str, Any]) -> list[str]:
    """Write the conditions under which a structure is the same again; each is true where it is not."""
    lines = []
    for path, kind, value in facts:
        name = f"fact_{len(scope)}"
        if path == "args":  # of a call, which are always a tuple
            lines.append(f"len(args) != {value[1]}")
        elif path == "kwargs" and not value:
            lines.append("kwargs")
        elif kind == "sequence":
            lines.append(f"type({path}) is not {value[0].__name__} or len({path}) != {value[1]}")
        elif kind == "dict":
            scope[name] = value
            lines.append(f"type({path}) is not dict or tuple({path}) != {name}")
        elif kind == "number":
            scope[f"{name}_type"] = value
            lines.append(f"type({path}) is not {name}_type")
        elif kind == "generator":
            scope["Generator"] = Generator
            lines.append(f"type({path}) is not Generator")
        elif value is None or value is Ellipsis or type(value) is bool:
            lines.append(f"{path} is not {value!r}")
        else:
            scope[name], scope[f"{name}_type"] = value, type(value)
            different = f"{path} != {name}"
            if type(value) is float and (value == 0 or math.isnan(value)):
                different = f"{path}.hex() != {value.hex()!r}"
            lines.append(f"type({path}) is not {name}_type or {different}")
    return lines


def containers(tree: Any, path: str, found: dict[int, str]) -> None:
    """Note by their ids which containers a structure has, and the expressions that lead to them."""
    kind = type(tree)
    if kind in (tuple, list, dict):
        found.setdefault(id(tree), path)
        for name, one in tree.items() if kind is dict else enumerate(tree):
            containers(one, f"{path}[{name!r}]", found)


def rebuilt(tree: Any, leaf: Callable[[Any], str], scope: dict[str, Any], known: dict[int, str]) -> str:
    """Write the expression that makes a structure of results again; `leaf` names what stands for a tensor.

    `known` says by their ids which containers are there already. Those that are made are noted there: one that stands in two places is one.
    """
    kind = type(tree)
    if kind in EXACT:
        return leaf(tree)
    if id(tree) in known:
        return known[id(tree)]
    if kind is tuple:
        return f"({''.join(f'{rebuilt(one, leaf, scope, known)}, ' for one in tree)})"
    if kind in (list, dict):
        name = f"made_{len(known)}"
        if kind is list:
            text = f"[{', '.join(rebuilt(one, leaf, scope, known) for one in tree)}]"
        elif all(type(key) in (str, int) for key in tree):
            text = f"{{{', '.join(f'{key!r}: {rebuilt(one, leaf, scope, known)}' for key, one in tree.items())}}}"
        else:
            raise UnknownError("a result whose keys are not strings", is_result=True)
        known[id(tree)] = name
        return f"({name} := {text})"
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        name = f"kind_{len(scope)}"
        scope[name] = kind
        return f"{name}({', '.join(rebuilt(one, leaf, scope, known) for one in tree)})"
    if kind in CONSTANTS:
        name = f"constant_{len(scope)}"
        scope[name] = tree
        return name
    if kind is Kept:
        name = f"kept_{len(scope)}"
        scope[name] = tree.thing
        return name
    raise UnknownError(f"a result of type {kind.__name__}", is_result=True)


def with_numbers(tree: Any, path: str, numbers: dict[str, Any]) -> Any:
    """Return a structure with other things in the place of numbers, by the expressions that lead to them."""
    kind = type(tree)
    if kind not in (tuple, list, dict):
        return numbers.get(path, tree)
    parts = list(tree.items() if kind is dict else enumerate(tree))
    made = [with_numbers(one, f"{path}[{name!r}]", numbers) for name, one in parts]
    if all(new is one for new, (_, one) in zip(made, parts, strict=True)):
        return tree
    return dict(zip(tree, made, strict=True)) if kind is dict else kind(made)


def swapped(tree: Any, stand_ins: dict[int, Any]) -> Any:
    """Return a structure with other things in the place of some, by their ids."""
    kind = type(tree)
    if kind in (tuple, list):
        return kind([swapped(one, stand_ins) for one in tree])
    if kind is dict:
        return {name: swapped(one, stand_ins) for name, one in tree.items()}
    return stand_ins.get(id(tree), tree)
