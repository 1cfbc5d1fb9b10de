"""Types of tensors by their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class _DynType:
    """A size that may be anything."""

    def __repr__(self) -> str:
        return "Dyn"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash("Dyn")


Dyn = _DynType()


class TensorType:
    """The type of a tensor with known, or partly known, sizes."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = tuple(dim)

    @property
    def dims(self) -> tuple[Any, ...]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.__args__ == other.__args__

    def __hash__(self) -> int:
        return hash(self.__args__)

    def __class_getitem__(cls, dims: Any) -> TensorType:
        return TensorType(dims if isinstance(dims, tuple) else (dims,))


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether two types may be of one tensor."""
    if t1 in (t2, Dyn) or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_consistent, t1.dims, t2.dims))
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says at least what the second says."""
    if t1 == t2 or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_more_precise, t1.dims, t2.dims))
    return False
