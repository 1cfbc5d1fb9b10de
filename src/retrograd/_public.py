"""Which names of a file are public where the file defines what it offers: its `__all__`."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def set_all(file: dict[str, Any], *more: str, but: str = "") -> None:
    """Set `__all__` to the names of a file's own public classes and functions, and some more; `but` names those left out.

    Type checkers take an `__all__` that is assigned and cannot be read for an empty one. Of a file that assigns none they see
    every public name.
    """
    home, left_out = file["__name__"], but.split()
    own = [name for name, value in file.items() if getattr(value, "__module__", None) == home and name[0] != "_"]
    file["__all__"] = sorted({*own, *more}.difference(left_out))


def all_of(*modules: ModuleType) -> list[str]:
    """Return the names in the `__all__` of modules."""
    return [name for module in modules for name in vars(module)["__all__"]]
