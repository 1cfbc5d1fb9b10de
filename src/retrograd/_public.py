"""Which names of a file are public where the file defines what it offers: its `__all__`."""

from __future__ import annotations

from typing import Any


def own_names(file: dict[str, Any], *more: str, but: str = "") -> list[str]:
    """Return the names of a file's own public classes and functions, and some more; `but` names those left out."""
    home, left_out = file["__name__"], but.split()
    own = [name for name, value in file.items() if getattr(value, "__module__", None) == home and name[0] != "_"]
    return sorted({*own, *more}.difference(left_out))
