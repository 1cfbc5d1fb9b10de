"""Which names of a file are public where the file defines what it offers: its `__all__`."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def set_all(file: dict[str, Any], *more: str, but: str = "") -> None:
    """Set `__all__` to the public names of what a file defines, or a package's own files, and some more; `but` leaves some out.

    Type checkers take an `__all__` that is assigned and cannot be read for an empty one. Of a file that assigns none they see
    every public name.
    """
    homes = {name: f"{getattr(value, '__module__', '')}." for name, value in file.items() if name[0] != "_"}
    own = [name for name, home in homes.items() if home.startswith(f"{file['__name__']}.")]
    file["__all__"] = sorted({*own, *more}.difference(but.split()))


def all_of(*modules: ModuleType) -> list[str]:
    """Return the names in the `__all__` of modules."""
    return [name for module in modules for name in vars(module)["__all__"]]
