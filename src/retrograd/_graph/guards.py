"""What a node knows of its saved values: their versions, who holds them, and that they are gone."""

from __future__ import annotations

from typing import Any
from weakref import ref

from .._places import Place


class Freed:
    """The guard of a node whose saved values are gone."""

    __slots__ = ("place",)

    def __init__(self, place: Place | None) -> None:
        self.place = place


class Packed:
    """A saved value in the hands of saved-tensor hooks."""

    __slots__ = ("given", "unpack", "value")

    def __init__(self, value: Any, unpack: Any, given: Any) -> None:
        self.value = value
        self.unpack = unpack
        self.given = ref(given)  # the tensor that was packed: an in-place operation moves it to its memory


class Guard:
    """Versions of saved values whose tensor had a Storage, and values given to saved-tensor hooks."""

    __slots__ = ("packed", "versions")

    def __init__(self) -> None:
        self.versions: dict[str, Any] = {}  # name -> (storage, version) or list of them
        self.packed: dict[str, Any] = {}


def intact(guard: Any) -> bool:
    """Tell by a quick look whether saved values are as they were and at hand; what is in doubt is looked at closely."""
    if type(guard) is not Guard or guard.packed:
        return False
    for entry in guard.versions.values():
        if type(entry) is not tuple:  # of a sequence of inputs
            return False
        storage, version = entry
        if storage is not None and (storage.version != version or storage.detached is not None):
            return False
    return True


def fresh(node: Any) -> bool:
    """Tell by a quick look whether every value that a node saved is as it was. See Note [Saved values] in `node.py`."""
    guard, versions = node.guard, ()
    if guard is not None:
        if not intact(guard):
            return False
        versions = guard.versions
    edges, input_of = node._edges, node.input_of
    for name in node.array_names:
        if (
            (edge := node if name == "out" else edges[input_of[name]]) is not None
            and (storage := edge._storage) is not None
            and storage.version
            and name not in versions
            and getattr(node, name) is not None
            and name not in node.unguarded
        ):
            return False
    return True
