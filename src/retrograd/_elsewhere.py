"""Names that stand in another module here than in torch, or in several of torch's: found when somebody asks for them.

They stand in `_compat/names_elsewhere.txt`: torch's module, then where its names are, then which (`*`: all that it lacks; `a=b`: a
is called b there). A module that has nothing else is made when it is imported.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

TABLE = os.path.join(os.path.dirname(__file__), "_compat", "names_elsewhere.txt")


@cache
def table() -> dict[str, dict[str, tuple[str, str]]]:
    """Return, by torch's module, where each of its names is: in which module, and under which name."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    with open(TABLE, encoding="ascii") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                home, _, rest = line.partition(":")
                source, *names = rest.split()
                places = found.setdefault(home, {})
                for name in names:
                    own, _, other = name.partition("=")
                    places[own] = (source, other or own)
    return found


def find(home: str, name: str) -> Any:
    """Return what stands elsewhere for a name in a module of torch, or None."""
    places = table().get(home, {})
    place = places.get(name) or places.get("*")
    if place is None:
        return None
    source, other = place
    module = import_module("retrograd" + source.removeprefix("torch") if source.startswith("torch") else source)
    return getattr(module, name if other == "*" else other, None)
