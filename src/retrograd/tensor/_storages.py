"""The memory under a tensor, as programs ask for it: how large it is, where it is, and who shares it."""

from __future__ import annotations

from typing import Any

from . import _base
from ._copying import memory_of


class UntypedStorage:
    """The bytes that a tensor and its views share; for reading."""

    def __init__(self, tensor: Any) -> None:
        _base.materialise(tensor)
        self._owner = memory_of(tensor)[0]
        self.device = tensor.device

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._owner.nbytes)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return the size of an element: a byte."""
        return 1

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return int(self._owner.__array_interface__["data"][0]) if self._owner.size else 0

    def tolist(self) -> list[int]:
        """Return the bytes as numbers."""
        return list(self._owner.tobytes("A"))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()


def untyped_storage(self: Any) -> UntypedStorage:
    """Return the memory under a tensor."""
    return UntypedStorage(self)
