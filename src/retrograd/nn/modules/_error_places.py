"""Errors that a layer raises say which layer it was, where in the model it is, and the shapes it was called with."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...tensor._tensor import Tensor

KINDS = (RuntimeError, ValueError, IndexError)  # of wrong shapes, channels, classes
PACKAGE = __name__.partition(".")[0] + "."


class _Place:
    """The layer that raised, and the path to it from the module that was reached last on the way out."""

    __slots__ = ("given", "layer", "path", "reached", "text")

    def __init__(self, text: str, layer: Any, given: tuple[Any, ...]) -> None:
        self.text = text
        self.layer = self.reached = layer
        self.given = given
        self.path: list[str] = []

    def message(self) -> str:
        where = f" at {'.'.join(self.path)!r}" if self.path else ""
        shapes = ", ".join([_shape(value) for value in self.given])
        layer = f"{self.layer._get_name()}({self.layer.extra_repr()})"
        return f"{self.text}\nHint: raised by {layer}{where}, called with {shapes or 'nothing'}."


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    return type(value).__name__


def tell_place(error: Exception, module: Any, given: tuple[Any, ...]) -> None:
    """Add a layer of the package to the text of an error that it raised, or a step of the path to it."""
    place: _Place | bool | None = error.__dict__.get("_layer_place")
    if place is None:
        own = (type(module).forward.__module__ or "").startswith(
            PACKAGE
        )  # what a user's module raises is left as it is
        text = len(error.args) == 1 and type(error.args[0]) is str and type(error) in KINDS
        place = _Place(error.args[0], module, given) if own and text else False
        error.__dict__["_layer_place"] = place
    elif isinstance(place, _Place):
        for name, child in module._modules.items():
            if child is place.reached:
                place.path.insert(0, name)
                place.reached = module
                break
    if isinstance(place, _Place):
        with suppress(
            Exception
        ):  # of a layer that cannot write its own text; what tells of an error must not replace it
            error.args = (place.message(),)
