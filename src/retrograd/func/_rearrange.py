"""torch.func.rearrange: name the axes of a tensor, and write the result with these names."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any

from ..tensor._base import Tensor
from ..tensor._functions.joining import stack

ELLIPSIS = "…"  # inside brackets: its axes are joined
DOTS = ("...",)  # outside: its axes stay apart
Group = tuple[str, ...]  # the names of one axis; none of them for an axis of size one


class DimensionBindError(Exception):
    """The sizes of named axes do not fit the tensor."""


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...],
    pattern: str,
    **axes_lengths: int,
) -> Tensor:
    """Split, permute and join axes as a pattern says: `rearrange(x, "b (h w) c -> b c h w", h=4)`.

    A list of tensors is stacked first. As in torch, a `1` on the left stands for an axis that is summed away.
    """
    value: Any = tensor if isinstance(tensor, Tensor) else stack(tensor, 0)
    left, right = _parsed(pattern)
    _check_lengths(left, axes_lengths)
    left, right = _without_ellipsis(left, right, value.ndim)
    if value.ndim == 0:
        return value
    sizes = _sizes(left, value.shape, axes_lengths)
    summed = tuple(i for i, group in enumerate(left) if not group)
    if summed:
        value = value.sum(summed)
    before = [name for group in left for name in group]
    after = [name for group in right for name in group]
    apart = value.reshape([sizes[name] for name in before])
    moved = apart.permute([before.index(name) for name in after])
    return moved.reshape([prod(sizes[name] for name in group) for group in right])


@lru_cache(256)
def _parsed(pattern: str) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """Read both sides of a pattern."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_side(text) for text in sides)
    names = [{name for group in side for name in ((ELLIPSIS,) if group == DOTS else group)} for side in (left, right)]
    if ELLIPSIS in names[1] - names[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(ELLIPSIS in group for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if names[0] != names[1]:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {_set(names[0] ^ names[1])}"
        )
    return left, right


def _side(text: str) -> tuple[Group, ...]:
    """Read one side: a group of names for each axis."""
    dots = text.replace("...", ELLIPSIS)
    if "." in text:
        if "." in dots:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if dots.count(ELLIPSIS) != 1:
            raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
    groups: list[Group] = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(r"[()]|[^() ]+", dots):
        if token == "(":
            if inside is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            groups.append(tuple(inside))
            inside = None
        elif token.isdecimal():
            if int(token) != 1:
                raise ValueError("rearrange only supports unnamed axes of size 1")
            if inside is None:
                groups.append(())
        else:
            _check_name(token)
            if token in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
            seen.add(token)
            if inside is not None:
                inside.append(token)
            else:
                groups.append(DOTS if token == ELLIPSIS else (token,))
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return tuple(groups)


def _check_name(name: str) -> None:
    if name == ELLIPSIS:
        return
    for character in name:
        if not (character.isalnum() or character in ("_", ELLIPSIS)):
            raise ValueError(f"Unknown character '{character}'")
    if not name.isidentifier():
        raise ValueError(f"Invalid axis identifier: {name}\nnot a valid python identifier")
    if name.startswith("_") or name.endswith("_"):
        raise ValueError(f"Invalid axis identifier: {name}\naxis name should should not start or end with underscore")


def _set(names: set[str]) -> str:
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"


def _check_lengths(left: tuple[Group, ...], lengths: dict[str, int]) -> None:
    unknown = lengths.keys() - {name for group in left for name in group}
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {_set(unknown)}")
    for length in lengths.values():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")


def _without_ellipsis(
    left: tuple[Group, ...], right: tuple[Group, ...], ndim: int
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """Give the axes of an ellipsis names of their own."""
    if DOTS not in left:
        if len(left) != ndim:
            raise ValueError(
                f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor "
                f"({ndim})"
            )
        return left, right
    count = ndim - len(left) + 1
    if count < 0:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - 1}) must be less than or equal to the number of dimensions in "
            f"the tensor ({ndim})"
        )
    names = tuple(f"{ELLIPSIS}{i}" for i in range(count))

    def spread(side: tuple[Group, ...]) -> tuple[Group, ...]:
        found: list[Group] = []
        for group in side:
            if group == DOTS:
                found.extend((name,) for name in names)
            else:
                at = group.index(ELLIPSIS) if ELLIPSIS in group else None
                found.append(group if at is None else group[:at] + names + group[at + 1 :])
        return tuple(found)

    return spread(left), spread(right)


def _sizes(left: tuple[Group, ...], shape: Any, lengths: dict[str, int]) -> dict[str, int]:
    """Find the size of every name: given, that of its axis, or what is left of it."""
    found: dict[str, int] = {}
    number = 0  # torch calls the names d0, d1, ... in its errors, and counts a summed axis as well
    for group, size in zip(left, shape, strict=True):
        called = {name: f"d{number + i}" for i, name in enumerate(group)}
        number += len(group) or 1
        known = {name: lengths[name] for name in group if lengths.get(name, -1) >= 0}
        open_names = [name for name in group if name not in known]
        if len(open_names) > 1:
            one, two = (called[name] for name in open_names[:2])
            raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {one} and {two}")
        product = prod(known.values())
        if open_names:
            if product == 0 or size % product:
                parts = tuple(known.get(name, "?") for name in group)
                raise DimensionBindError(
                    f"inferred dimension does not evenly fit into larger dimension: {size} vs {parts}"
                )
            known[open_names[0]] = size // product
        elif group and product != size:
            pack = ", ".join(called.values()) + ("," if len(group) == 1 else "")
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {product}) when matching dimension pack ({pack})"
            )
        found |= known
    return found
