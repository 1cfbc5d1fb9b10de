"""torch.utils.weak: dictionaries that keep no key alive and know keys by identity, as tensors compare element by element."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another one of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), other() if isinstance(other, weakref.ref) else None
        if mine is not None and others is not None:
            return mine is others
        return self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """Values by objects that may go away, and their values with them."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        here = weakref.ref(self)

        def forget(reference: Any) -> None:
            if (found := here()) is not None:
                found.data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            if (key := reference()) is not None:
                yield key

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what cannot be referred to weakly is not here
            return False

    def keyrefs(self) -> list[Any]:
        """Return the weak references to the keys."""
        return list(self.data)

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
TensorWeakRef = WeakIdRef

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
