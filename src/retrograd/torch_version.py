"""torch.torch_version: the release whose behaviour is matched, as a version that compares by its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

TORCH_VERSION = "2.13.0"  # the release whose behaviour is matched


class TorchVersion(str):
    """A version that compares by its numbers, as torch's does: "2.13.0" >= "2.2", also >= (2, 2)."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other: object) -> bool:
        return numbers_of(self) < numbers_of(other)

    def __le__(self, other: object) -> bool:
        return numbers_of(self) <= numbers_of(other)

    def __gt__(self, other: object) -> bool:
        return numbers_of(self) > numbers_of(other)

    def __ge__(self, other: object) -> bool:
        return numbers_of(self) >= numbers_of(other)

    def __eq__(self, other: object) -> bool:
        return numbers_of(self) == numbers_of(other)

    def __ne__(self, other: object) -> bool:
        return numbers_of(self) != numbers_of(other)


def numbers_of(version: object) -> tuple[int, ...]:
    """(2, 13) of "2.13.0+cpu", (2, 13) or a Version object: trailing zeros and suffixes carry no weight."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    found = re.match(r"v?(\d+(?:\.\d+)*)", str(version))
    numbers = [int(part) for part in found[1].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


__version__ = TorchVersion(TORCH_VERSION)

__all__ = ["TorchVersion"]
