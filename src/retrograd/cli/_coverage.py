"""`retrograd coverage`: how many of torch's names retrograd has, and which are missing.

Two lists are asked: torch's public names, and the names that widely used libraries import or read. Names that retrograd leaves out on
purpose (quantization, the internals of torch's own compiler) count as missing like all others, and stand in the list by their module.
"""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType

from retrograd._missing import torch_names

COMPAT = Path(__file__).parent.parent / "_compat"


def report(*, which: str, every: bool) -> None:
    """Print how many names of a list exist, and the missing ones, by module or one by one."""
    names = {"public": public_names, "used": used_names}[which]()
    missing = sorted(name for name in names if not exists(name))
    print(f"{which}: {len(names)} names, {len(names) - len(missing)} exist ({1 - len(missing) / len(names):.1%})")
    refusing = sum(says_what_it_needs(name) for name in names)
    print(f"{refusing:6} of these can be imported and say what they need when they are used")
    if every:
        for name in missing:
            print(name, *([names[name]] if which == "used" else []))
    else:
        homes = Counter(".".join(name.split(".")[:2]) for name in missing)
        for home, count in homes.most_common():
            print(f"{count:6} missing in {home}")


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
    """Return what a name of torch's stands for, or MISSING."""
    value: object = importlib.import_module("retrograd")
    place = "retrograd"
    for part in name.split(".")[1:]:
        place = f"{place}.{part}"
        try:
            with warnings.catch_warnings(action="ignore"):  # names that torch has deprecated
                value = getattr(value, part)
        except AttributeError:
            if not isinstance(value, ModuleType):
                return MISSING
            try:
                value = importlib.import_module(place)
            except ImportError:
                return MISSING
    return value
