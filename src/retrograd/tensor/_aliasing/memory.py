"""Memory under arrays of any level: writing into it and copying it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import primitive as core
from ..._core.arrays import Batched, Dual, LevelArray, raw_leaf
from ..._core.primitive import vocabulary
from .._object.devices import beside


def covers(target: Any, value: Any) -> bool:
    """Tell whether every level of a value has a place in the target's memory."""
    if not isinstance(value, LevelArray):
        return True
    if not isinstance(target, LevelArray) or target.level.number < value.level.number:
        return False
    if target.level is value.level and isinstance(target, Batched):
        return covers(target.array, value.array)  # type: ignore[attr-defined]
    if target.level is value.level:
        if value.tangent is None:  # type: ignore[attr-defined]
            return covers(target.primal, value.primal)  # type: ignore[attr-defined]
        if target.tangent is None:  # type: ignore[attr-defined]
            return False
        return covers(target.primal, value.primal) and covers(target.tangent, value.tangent)  # type: ignore[attr-defined]
    return covers(target.array if isinstance(target, Batched) else target.primal, value)  # type: ignore[attr-defined]


def may_share(one: Any, other: Any) -> bool:
    """Tell whether two arrays of any level may show the same memory."""
    one, other = raw_leaf(one), raw_leaf(other)
    if one is other:
        return True
    if isinstance(one, np.generic) or isinstance(other, np.generic):
        return False  # values without memory
    return type(one) is not np.ndarray or type(other) is not np.ndarray or np.may_share_memory(one, other)


def store(target: Any, value: Any) -> None:
    """Write into the raw memory under an array of any level."""
    if isinstance(target, Dual):
        mine = isinstance(value, Dual) and value.level is target.level
        store(target.primal, value.primal if mine else value)
        tangent = value.tangent if mine else None
        if target.tangent is None:
            if tangent is None:
                return
            target.tangent = zero_memory(target.primal)
        store(target.tangent, 0 if tangent is None else tangent)
    elif isinstance(target, Batched):
        if isinstance(value, Batched) and value.level is target.level:
            value = core.align_ranks([target.array, value.array], [True, True])[1]
            store(target.array, value)
        else:
            store(target.array, value)
    elif isinstance(target, np.ndarray) and not target.size:
        return
    elif isinstance(target, np.ndarray) and not target.flags.writeable:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    elif isinstance(value, np.ndarray):
        value = beside(value, target)
        if 0 in target.strides and value.shape == target.shape:
            # an expanded tensor, of which some elements were written: the others must not undo it
            changed = (value != target) & ((value == value) | (target == target))
            target[changed] = value[changed]
        else:
            target[...] = value
    else:
        target[...] = value


def zero_memory(array: Any) -> Any:
    """Return zeros with every part that an array has: a tangent, whose parts will be written as the array's are."""
    if isinstance(array, Dual):
        tangent = None if array.tangent is None else zero_memory(array.tangent)
        return Dual(array.level, zero_memory(array.primal), tangent)
    if isinstance(array, Batched):
        return Batched(array.level, zero_memory(array.array))
    return own_memory(vocabulary.zeros_like(array))


def own_memory(array: Any) -> Any:
    """Copy an array so that every part is writable memory of its own."""
    if isinstance(array, Dual):
        return Dual(array.level, own_memory(array.primal), None if array.tangent is None else own_memory(array.tangent))
    if isinstance(array, Batched):
        return Batched(array.level, own_memory(array.array))
    return (
        array.copy()
        if isinstance(array, np.ndarray)
        else np.array(array)
        if isinstance(array, np.generic)
        else array.copy()
    )
