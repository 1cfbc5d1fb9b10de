"""Give shapes a tuple type of their own."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final, NoReturn, SupportsIndex, overload

_SMALLEST_LONG: Final = -(1 << 63)
_LARGEST_LONG: Final = (1 << 63) - 1


class Size(tuple[int, ...]):
    """Hold the lengths of a tensor's dimensions: a tuple.

    Example:
        >>> size = torch.ones(2, 3).shape
        >>> size, size.numel(), size[-1]
        (torch.Size([2, 3]), 6, 3)
    """

    __module__ = "retrograd"

    __slots__ = ()

    def __new__(cls, *args: Iterable[Any], **kwargs: NoReturn) -> Size:
        """Read whole numbers from an iterable."""
        return _checked(tuple(*args, **kwargs))

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse subclasses."""
        raise TypeError("type 'torch.Size' is not an acceptable base type")

    def __repr__(self) -> str:
        """Return the lengths as PyTorch prints them."""
        if any(not _SMALLEST_LONG <= length <= _LARGEST_LONG for length in self):
            raise ValueError("Overflow when unpacking long long")
        return f"torch.Size([{', '.join(map(str, self))}])"

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Size: ...

    def __getitem__(self, index: SupportsIndex | slice) -> int | Size:
        """Return one length, or some of them as a Size."""
        found = tuple.__getitem__(self, index)
        return _trusted(found) if type(found) is tuple else found  # type: ignore[return-value]

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        """Append the lengths of another tuple."""
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        joined = tuple.__add__(self, other)
        return _trusted(joined) if type(other) is Size else _checked(joined)

    def __radd__(self, other: tuple[int, ...]) -> Size:
        """Prepend the lengths of another tuple."""
        if not isinstance(other, tuple):
            return NotImplemented
        return _checked(tuple.__add__(other, self))

    def __mul__(self, count: SupportsIndex) -> Size:
        """Repeat the lengths."""
        try:
            repeats = operator.index(count)
        except TypeError:
            if hasattr(count, "__array__"):
                return NotImplemented
            given = type(count).__name__
            raise TypeError(f"can't multiply sequence by non-int of type '{given}'") from None
        return _trusted(tuple.__mul__(self, repeats))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        """Pickle as the call that makes this Size."""
        return Size, (tuple(self),)

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size."""
        count = 1
        for length in self:
            count *= length
        return count if _SMALLEST_LONG <= count <= _LARGEST_LONG else _wrapped(count)


def _trusted(lengths: tuple[int, ...]) -> Size:
    return tuple.__new__(Size, lengths)


def _checked(lengths: tuple[Any, ...]) -> Size:
    kept = list(lengths)
    for position, length in enumerate(lengths):
        if type(length) is int:
            continue
        number = _whole(length, position)
        # PyTorch keeps foreign integers such as NumPy's as they came, but unpacks bools and tensors.
        if isinstance(length, bool) or hasattr(length, "requires_grad"):
            kept[position] = number
    return _trusted(tuple(kept))


def _whole(length: Any, position: int) -> int:
    try:
        return operator.index(length)
    except (TypeError, ValueError):
        described = type(length)
        prefix = "numpy." if described.__module__ == "numpy" else ""
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {position} is '{prefix}{described.__name__}')"
        ) from None


def _wrapped(count: int) -> int:
    """Return what is left of a count that overflows 64 bits."""
    return (count - _SMALLEST_LONG) % (1 << 64) + _SMALLEST_LONG
