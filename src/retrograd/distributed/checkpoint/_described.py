"""What a checkpoint says of itself, as bytes that torch and retrograd read: our classes are written by their names in torch."""

from __future__ import annotations

import pickle
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar

from ..._device import layout as layout_type
from .metadata import Metadata

PACKAGE = __name__.partition(".")[0]
HOMES = {"_get_layout": ".serialization"}  # of what is written in a private file here
HARMLESS = {("collections", "OrderedDict"), ("builtins", "set"), ("builtins", "getattr")}


def write_described(metadata: Metadata, file: Any) -> None:
    """Write what a checkpoint says of itself."""
    _InTorchsNames(file, protocol=4).dump(metadata)


def read_described(file: Any) -> Metadata:
    """Read what a checkpoint says of itself."""
    found: Metadata = _OfTorchsNames(file).load()
    return found


_Pickler: Any = pickle._Pickler


class _InTorchsNames(_Pickler):  # type: ignore[misc]
    """Writes our classes and functions by the names that they have in torch."""

    dispatch: ClassVar[dict[type, Any]] = dict(_Pickler.dispatch)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        home = getattr(obj, "__module__", None) or PACKAGE
        first, dot, rest = home.partition(".")
        if first not in ("torch", PACKAGE):
            super().save_global(obj, name)
            return
        name = name or obj.__qualname__
        public = HOMES.get(name, "" if rest.startswith("_") else f"{dot}{rest}")
        self.write(pickle.GLOBAL + f"torch{public}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[type] = dispatch[FunctionType] = save_global

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, layout_type):
            return import_module(f"{PACKAGE}.serialization")._get_layout, (str(obj),)
        return NotImplemented


class _OfTorchsNames(pickle.Unpickler):
    """Reads what torch wrote about a checkpoint, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        first, dot, rest = module.partition(".")
        if first == "torch":
            found: Any = import_module(f"{PACKAGE}{dot}{rest}")
            for part in name.split("."):
                found = getattr(found, part)
            return found
        if first == "pathlib" or (module, name) in HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into the description of a checkpoint")
