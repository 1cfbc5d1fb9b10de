"""What is said of a name that retrograd does not have: torch has it, or nobody does and another was meant."""

from __future__ import annotations

import os
import sys
from functools import cache


class MissingNameError(AttributeError):
    """An attribute that a module lacks.

    Its text is made when somebody reads it: `hasattr` asks often and reads nothing.
    """

    def __init__(self, home: str, name: str) -> None:
        super().__init__(home, name)
        self.home, self.missing = home, name
        self.name = name  # Python's own suggestions need `obj`, too, which stays empty: the text has them already

    def __str__(self) -> str:
        if self.home.partition(".")[0] == "retrograd" or self.missing.startswith("__"):
            return f"module '{self.home}' has no attribute '{self.name}'"
        return f"module '{self.home}' has no attribute '{self.name}'{explanation(self.home, self.missing)}"


def explanation(home: str, name: str) -> str:
    """Say behind a message whether torch has a name, or which similar ones there are."""
    if is_torchs(f"{home}.{name}"):
        return " (torch has it; retrograd does not yet: `retrograd coverage` lists what is missing)"
    if name.startswith("_") or "._" in home:
        return " (retrograd does not have it)"  # the list has public names alone
    import difflib  # when somebody reads the message

    here = set(dir(sys.modules[home])) if home in sys.modules else set()
    known = here | torch_names().get(home, set())
    other_case = [one for one in sorted(known) if one.lower() == name.lower()]  # AdamW is nearer to Adamw than Adam is
    close = other_case or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return (
        f" (torch does not have it either; did you mean '{close[0]}'?)" if close else " (torch does not have it either)"
    )


def is_torchs(name: str) -> bool:
    """Whether torch has a public name, or a module of that name."""
    home, _, last = name.rpartition(".")
    return last in torch_names().get(home, ()) or name in torch_names()


@cache
def torch_names() -> dict[str, set[str]]:
    """Return the public names of torch 2.13.0 by the module, or the class, that has them."""
    table: dict[str, set[str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "_compat", "torch_names.txt"), encoding="ascii") as lines:
        for line in lines:
            home, _, names = line.partition(": ")
            table[home] = set(names.split())
    return table
