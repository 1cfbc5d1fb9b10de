"""How torch writes a tensor inside transforms: the value, and around it a wrapper for every transform that it is in.

Here levels are array types, and grad has none. So which wrappers torch's tensor would have is told by where a tensor came from: one that
has entered is written around the tensor that it shows; for others the arrays tell of vmap and jvp, and of grad and vjp that they were
made inside. The batch of a result stands in front; torch may leave it where the input had it.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ..._core.arrays import Batched, Dual, LevelArray
from ..._core.levels import BATCH
from ..._modes import current_mode
from .._aliasing.entering import base_of, entered
from .._base import stored, wrap

TRACKING = frozenset({"grad", "vjp", "jvp"})


def wrapped_text(tensor: Any, text: Any) -> str | None:
    """Write a tensor inside transforms; None if it is in none. `text` writes those outside."""
    return _written(tensor, list(current_mode().transforms), text)


def _written(tensor: Any, transforms: list[Any], text: Any) -> str | None:
    link = entered(tensor)
    if link is not None and link.transforms < len(transforms) and transforms[link.transforms].kind != "dual_level":
        transform, outer = transforms[link.transforms], transforms[: link.transforms]
        inner = _written(link.outer, outer, text) or text(link.outer)
        axis = link.leaving[1]["axis"] if transform.kind == BATCH and link.leaving is not None else 0
        return _around(inner, transform, transforms, axis)
    array, wrappers, tracked = stored(tensor), [], False
    made = base_of(tensor)._extra
    born = 0 if made is None else made.born
    for transform in reversed(transforms):
        if transform.kind == "dual_level":
            continue
        if isinstance(array, LevelArray) and array.level is transform.level:
            array = array.array if isinstance(array, Batched) else array.primal  # type: ignore[attr-defined]
        elif transform.kind not in TRACKING or born < transform.born:
            continue
        wrappers.append(transform)
        tracked = tracked or transform.kind in TRACKING
    if not wrappers:
        return None
    value = wrap(array, None if tracked else tensor._edge)
    value._extra = None  # it is not inside
    inner = text(value)
    for transform in reversed(wrappers):
        inner = _around(inner, transform, transforms)
    return inner


def _around(inner: str, transform: Any, transforms: list[Any], axis: int = 0) -> str:
    number = 1 + [one for one in transforms if one.kind != "dual_level"].index(transform)
    start = (
        f"BatchedTensor(lvl={number}, bdim={axis}" if transform.kind == BATCH else f"GradTrackingTensor(lvl={number}"
    )
    return f"{start}, value=\n{indent(inner, '    ')}\n)"


def text_of_ended(array: Any, extra: list[str], text: Any) -> Any:
    """Take an array out of levels that have ended and of `forward_ad`; a batch is written at once."""
    while isinstance(array, LevelArray):
        if isinstance(array, Dual):
            if array.level.alive and array.tangent is not None:
                extra.append(f"tangent={wrap(array.tangent)}")
            array = array.primal
        else:
            inner = indent(text(wrap(array.array)), "    ")  # type: ignore[attr-defined]
            return f"BatchedTensor(lvl={array.level.number}, bdim=0, value=\n{inner}\n)"  # its own number
    return array
