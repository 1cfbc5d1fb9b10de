"""torch.utils._ordered_set: a set that keeps the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """A set in the order of insertion."""

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def add(self, elem: T) -> None:
        """Put an element at the end unless it is in."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Take an element out if it is in."""
        self._dict.pop(elem, None)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of other iterables."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet[T]:
        """Return another set of the same elements."""
        return OrderedSet(self)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({list(self)})" if self else f"{self.__class__.__name__}()"


__all__ = ["OrderedSet"]
