"""Do all processes mean the same? Collectives compare what they are called with, before anything is sent.

Note [What processes agree on]
MPI does not compare what its processes give: tensors of different sizes or dtypes are cut off or become wrong numbers. So:
Rule 1. The first collectives of a group are compared: which one it is, how many numbers of which dtype, the ReduceOp, the root. A mistake
        in a program mostly shows in its first steps. It takes one small message more, about 5 us.
Rule 2. After those, a checksum of what was called is compared now and then: a mistake is told, if late.
Rule 3. With TORCH_DISTRIBUTED_DEBUG=DETAIL all are compared, with their shapes, as by torch's wrapper.
Rule 4. Which ones are compared depends on nothing but their number in the group, or processes would differ in that.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _errors
from ._reductions import ReduceOp
from ._work import Steps

FIRST = 16  # how many collectives of a group are compared one by one
EVERY = 64  # how many are then compared at once
TEXT = 400  # bytes in which a process says what it does


class DebugLevel(IntEnum):
    """How much is compared and told."""

    OFF, INFO, DETAIL = range(3)


class _Level:
    now = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """Return how much is compared: with DETAIL every collective of groups that are made from now on."""
    return _Level.now


def set_debug_level(level: DebugLevel) -> None:
    """Say how much is compared."""
    _Level.now = level


def set_debug_level_from_env() -> None:
    """Read how much is compared from TORCH_DISTRIBUTED_DEBUG."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise ValueError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.\nHint: it is {word}.")
    set_debug_level(DebugLevel[word])


def comparisons_of(size: int) -> float:
    """Return how many collectives a new group of so many processes compares."""
    if size == 1:
        return 0
    return float("inf") if _Level.now is DebugLevel.DETAIL else FIRST


def agreed(group: Any, what: str, given: Sequence[Any], how: Any, issue: Callable[[], Any]) -> Callable[[], Any]:
    """Return what starts a collective: with a comparison of the tensors that are given and of how they are combined, where one is due."""
    number = group.called
    group.called += 1
    if number < group.comparisons:
        return _compared(group, number, _said(what, given, how, in_full=_Level.now is DebugLevel.DETAIL), issue)
    numbers = given[0].numel() if len(given) == 1 else sum(one.numel() for one in given)
    group.checksum = zlib.crc32(_called(what, numbers, given[0].dtype if given else None, how), group.checksum)
    if number % EVERY:
        return issue
    return _compared(group, number, [str(group.checksum)], issue)


@lru_cache(1000)  # programs call the same again and again: a third of the time
def _called(what: str, numbers: int, dtype: Any, how: Any) -> bytes:
    return f"{what} {numbers} {dtype} {how}".encode()


def _compared(group: Any, number: int, own: list[str], issue: Callable[[], Any]) -> Callable[[], Steps]:
    def steps() -> Steps:
        mark = zlib.crc32("|".join(own).encode())
        least_and_most = np.array([-mark, mark])
        yield group._engine.all_reduce(least_and_most, ReduceOp.MAX)
        if least_and_most.sum():
            mine = "|".join(own).encode()[:TEXT].ljust(TEXT)
            texts = np.empty(TEXT * group.size(), np.uint8)
            yield group._engine.all_gather(texts, np.frombuffer(mine, np.uint8).copy())
            every = [row.tobytes().decode(errors="replace").strip().split("|") for row in texts.reshape(-1, TEXT)]
            raise RuntimeError(_disagreement(number, group.rank(), own, every))
        begun = issue()
        if hasattr(begun, "Test"):
            yield begun
        else:
            yield from begun

    return steps


def _said(what: str, given: Sequence[Any], how: Any, in_full: bool) -> list[str]:
    """Say what a process does, in parts that can be compared: kind, sizes, dtypes, and how."""
    kind = "REDUCE_SCATTER" if what == "reduce_scatter" else what.replace("_", "").upper()
    if in_full:
        sizes = ", ".join(_errors.sizes(one.shape)[1:-1] for one in given)
    else:
        sizes = str(sum(one.numel() for one in given)) if given else ""
    dtypes = ", ".join(dict.fromkeys(one.dtype._scalar_name for one in given))
    return [kind, sizes, dtypes, str(how)]


ASPECTS = ("Op type", "Tensor Tensor shapes", "Tensor Tensor dtypes", "Root or ReduceOp")


def _disagreement(number: int, rank: int, own: list[str], every: list[list[str]]) -> str:
    other = next(at for at, said in enumerate(every) if said != own)
    if len(own) == 1:
        return (
            f"Detected mismatch between collectives on ranks. Rank {rank} and Rank {other} differ in one of the collectives "
            f"{number - EVERY} to {number} of this group\nHint: TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment says which, and in what."
        )
    differ = [
        f"{aspect}: {one}vs {two}" for aspect, one, two in zip(ASPECTS, own, every[other], strict=True) if one != two
    ]
    return (
        f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {_print(number, own)}, but Rank {other} is "
        f"running collective: {_print(number, every[other])}.Collectives differ in the following aspects: \t {' '.join(differ)}\n"
        "Hint: all processes call the same collectives in the same order, with tensors of one shape and dtype."
    )


def _print(number: int, said: list[str]) -> str:
    kind, sizes, dtypes, _ = said
    tensors = f", TensorShape=[{sizes}], TensorDtypes={dtypes}" if dtypes else ""
    return f"CollectiveFingerPrint(SequenceNumber={number}, OpType={kind}{tensors})"
