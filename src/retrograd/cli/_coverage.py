"""`retrograd coverage`: how many of torch's names retrograd has, and which are missing.

Two lists are asked: torch's public names, and the names that widely used libraries import or read. Names that retrograd leaves out on
purpose count as missing like all others. Public names that have no meaning on dense tensors are left out first and counted by their
reason: `_compat/areas_without_meaning.txt` names the areas.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

from retrograd._missing import torch_names

COMPAT = Path(__file__).parent.parent / "_compat"


def report(*, which: str, every: bool) -> None:
    """Print how many names of a list exist, and the missing ones, by module or one by one."""
    names = {"public": public_names, "used": used_names}[which]()
    if which == "public":
        names = _print_left_out(names)
    missing = sorted(name for name in names if not exists(name))
    refusing = sum(says_what_it_needs(name) for name in names)
    there = len(names) - len(missing)
    print(f"{which}: {len(names)} names, {there} exist ({there / len(names):.1%}), {there - refusing} work")
    print(f"{refusing:6} of those that exist can be imported and say what they need when they are used")
    if every:
        for name in missing:
            print(name, *([names[name]] if which == "used" else []))
    else:
        homes = Counter(".".join(name.split(".")[:2]) for name in missing)
        for home, count in homes.most_common():
            print(f"{count:6} missing in {home}")


def _print_left_out(names: dict[str, int]) -> dict[str, int]:
    """Print how many names have no meaning on dense tensors, by reason, and return the others."""
    reasons = {name: reason for name in names if (reason := why_left_out(name))}
    print(f"torch: {len(names)} public names, {len(reasons)} without a meaning on dense tensors in one process:")
    for reason, count in Counter(reasons.values()).most_common():
        print(f"{count:6} {reason}")
    return {name: count for name, count in names.items() if name not in reasons}


def why_left_out(name: str) -> str | None:
    """Return why a name has no meaning on dense tensors, or None if it has one."""
    return next((reason for reason, pattern in areas().items() if pattern.match(name)), None)


@cache
def areas() -> dict[str, re.Pattern[str]]:
    """Return the areas that have no meaning on dense tensors: a pattern of names for each reason."""
    patterns: dict[str, list[str]] = {}
    for line in (COMPAT / "areas_without_meaning.txt").read_text().splitlines():
        if line.startswith("= "):
            under = patterns.setdefault(line[2:], [])
        elif not line.startswith("#"):
            under += line.split()
    return {reason: pattern(parts) for reason, parts in patterns.items()}


def pattern(areas: list[str], end: str = r"\.|$") -> re.Pattern[str]:
    """Return what matches names in areas: `*` stands for any letters within a name."""
    parts = "|".join(re.escape(area).replace(r"\*", "[^.]*") for area in areas)
    return re.compile(rf"^({parts})({end})", re.MULTILINE)


def public_names() -> dict[str, int]:
    """Return the public names of torch 2.13.0."""
    return {f"{home}.{name}": 1 for home, names in torch_names().items() for name in names}


def used_names() -> dict[str, int]:
    """Return the names of torch that libraries use, with the number of libraries that use each."""
    return {name: int(count) for name, count in map(str.split, (COMPAT / "used_names.txt").read_text().splitlines())}


def exists(name: str) -> bool:
    """Whether retrograd has a name of torch's: `torch.nn.Linear`, `torch.Tensor.add`, a module."""
    return found(name) is not MISSING


def says_what_it_needs(name: str) -> bool:
    """Whether a name exists, but only to be imported."""
    return bool(getattr(found(name), "__dict__", {}).get("is_absent", False))


MISSING = object()


def found(name: str) -> object:
    """Return what a name of torch's stands for, or MISSING.

    A module is asked before what hides it: `torch.autograd.gradcheck` is a function, and a module that has names.
    """
    home, _, last = name.rpartition(".")
    module = _module(home)
    if module is None:
        value = found(home) if home else MISSING
        if value is MISSING:
            return MISSING
    else:
        value = module
    try:
        with warnings.catch_warnings(action="ignore"):  # names that torch has deprecated
            return getattr(value, last)
    except AttributeError:
        return _module(name) or MISSING


@cache
def _module(name: str) -> ModuleType | None:
    """Return a module of retrograd by torch's name for it, or None."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module("retrograd" + name.removeprefix("torch"))
    except ImportError:
        return None
