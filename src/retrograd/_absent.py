"""Names of torch that libraries import and retrograd does not have: they can be imported, and say what they need when they are used.

They stand in `_compat/absent_names.txt`, by the module that has them in torch, below what they would need. A name whose first letter is a
capital is a class, which can be subclassed and which nothing is an instance of; any other is a function. `Name.member` is what a class has:
one whose members are all in capitals is an enumeration. Modules that have nothing else are made when they are imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._missing import MissingNameError
from ._tracebacks import guarded

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

TABLE = os.path.join(os.path.dirname(__file__), "_compat", "absent_names.txt")


class Needs(dict[str, str]):
    """The names of a module, and what each would need."""


@cache
def table() -> dict[str, Needs]:
    """Return the names by the module that has them in torch."""
    found: dict[str, Needs] = {}
    reason = ""
    with open(TABLE, encoding="ascii") as lines:
        for line in lines:
            text = line.strip()
            if text.startswith("= "):
                reason = text[2:]
            elif text and not text.startswith("#"):
                home, _, names = text.partition(":")
                for parent in _parents(home):
                    found.setdefault(parent, Needs())
                found.setdefault(home, Needs()).update(dict.fromkeys(names.split(), reason))
    return found


def _parents(home: str) -> list[str]:
    parts = home.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def find(home: str, name: str) -> Any:
    """Return what stands for a name in a module of torch, or None."""
    names = table().get(home)
    if names is None or name not in names:
        return None
    members = [one.partition(".")[2] for one in names if one.startswith(f"{name}.")]
    if members and all(one.isupper() for one in members):
        from enum import Enum  # few programs come here

        return Enum(name, members, module=home)
    if name.lstrip("_")[:1].isupper():
        return _class(home, name, names[name], members)
    return function(home, name, names[name])


def function(home: str, name: str, needs: str) -> Callable[..., Any]:
    """Make a function that says what it needs."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{home}.{name} {needs}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__module__ = home
    refuse.is_absent = True  # type: ignore[attr-defined]
    return refuse


def _class(home: str, name: str, needs: str, members: Sequence[str]) -> type:
    """Make a class that cannot be called."""
    held: dict[str, Any] = {one: staticmethod(function(home, f"{name}.{one}", needs)) for one in members}
    refuse = function(home, name, needs)
    return type(name, (), {**held, "__new__": refuse, "__module__": home, "is_absent": True})


def finder(home: str, *, by_torchs_name: bool = False, modules: str = "") -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: what stands elsewhere, what is absent, and an error for all else.

    The error names the module as it is called at present, or always as torch calls it. `modules` are those of a package that are
    loaded when they are asked for.
    """
    own = "retrograd" + home.removeprefix("torch")
    later = frozenset(modules.split())

    def find_attribute(name: str) -> Any:
        if not name.startswith("__"):
            from . import _elsewhere  # when a name is first looked for

            if name in later or is_made(f"{home}.{name}"):
                return import_module(f"{own}.{name}")
            found = _elsewhere.find(home, name)
            if found is None:
                found = find(home, name)
            if found is not None:
                setattr(sys.modules[own], name, found)
                return found
        raise MissingNameError(home if by_torchs_name else sys.modules[own].__name__, name)

    return guarded(find_attribute)


def is_made(home: str) -> bool:
    """Tell whether a module of torch's has nothing but names that are absent, or stand elsewhere."""
    from . import _elsewhere  # when a module is first looked for

    return home in table() or home in _elsewhere.table()


class AbsentFinder:
    """Makes the modules that have only absent names, or names from elsewhere. It comes last: whatever exists is found before.

    It is a finder and a loader without their base classes, which take longer to load than the rest of this file.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("retrograd.") or not is_made(_torchs(fullname)):
            return None
        from importlib.machinery import ModuleSpec as Spec  # few programs come here

        return Spec(fullname, self, origin=TABLE, is_package=True)  # type: ignore[arg-type] # see above

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        from . import _elsewhere  # when a module is first looked for

        home = _torchs(module.__name__)
        module.__doc__ = f"{home}: made when it was imported. Its names stand in other modules, or say what they need."
        vars(module).update(__getattr__=finder(home), is_absent=home in table())
        if home in _elsewhere.table():
            vars(module)["__all__"] = [name for name in _elsewhere.table()[home] if name != "*"]


def _torchs(name: str) -> str:
    return "torch" + name.removeprefix("retrograd")


sys.meta_path.append(AbsentFinder())
