"""Operations whose results have sizes that the numbers decide, under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.arrays import levels_of
from ..._core.levels import BATCH
from ..._core.primitive import vocabulary
from ...tensor._functions.joining import stack


def outermost_batch(*tensors: Any) -> Any:
    """Return the level over which the tensors are batches, if the highest level of one of them is that of a batch."""
    for tensor in tensors:
        if tensor is not None and (levels := levels_of(tensor._array)):
            level = max(levels, key=lambda one: one.number)
            if level.kind == BATCH:
                return level
    return None


def sample_by_sample(level: Any, function: Callable[..., tuple[Any, ...]], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call a function for every sample of a batch, and make batches of its results."""
    whole = [None if one is None else vocabulary.leave_batch(one, level=level, axis=0) for one in given]
    results = [function(*[None if one is None else one[k] for one in whole]) for k in range(level.size)]
    return tuple(vocabulary.enter_batch(stack(parts), level=level, axis=0) for parts in zip(*results, strict=True))
