"""The stubs and the package have the same names: what one says, the other knows."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from types import ModuleType

import pytest

import retrograd
from retrograd import _absent
from tests.type_checking.checking import SOURCE, environment, mypy

STUBS = SOURCE / "torch-stubs"
# One that needs another package; one that is hidden by the function of its name once that was asked for.
HIDDEN = {("utils", "tensorboard"), ("autograd", "gradcheck")}
USED = SOURCE / "retrograd" / "_compat" / "used_names.txt"


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Give torch's name of each module that has a stub, and the module; without those whose name is a function's as well."""
    for path in sorted(STUBS.rglob("*.pyi")):
        parts = path.relative_to(STUBS).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts[:2] in HIDDEN:
            continue
        module = importlib.import_module(".".join(["retrograd", *parts]))
        if reduce(getattr, parts, retrograd) is module:
            yield ".".join(["torch", *parts]), module


def public_names() -> set[str]:
    """Return the names that modules list in `__all__`, and those that libraries use, as far as the package has them."""
    known = dict(modules())
    found = {f"{place}.{name}" for place, module in known.items() for name in getattr(module, "__all__", ())}
    used = {line.split()[0] for line in USED.read_text().splitlines() if line.strip() and not line.startswith("#")}
    values = {}
    for name in found | used:
        place, _, last = name.rpartition(".")
        if place in known and hasattr(known[place], last) and last not in _absent.table().get(place, ()):
            values[name] = getattr(known[place], last)
    own = {"torch.as_torch"}  # which torch has not
    return {
        name
        for name, value in values.items()
        if not isinstance(value, ModuleType) and not name.rpartition(".")[2].startswith("_") and name not in own
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links")
def test_type_checkers_know_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    names = sorted(public_names())
    assert len(names) > 2000
    program = tmp_path / "program.py"
    program.write_text("".join(f"import {name}\n" for name, _ in modules()) + "".join(f"{name}\n" for name in names))
    lines = program.read_text().splitlines()
    found = mypy(environment(tmp_path / "environment"), [program])
    assert {lines[line - 1]: text for (_, line), text in found.items()} == {}


def declared(path: Path) -> Iterator[str]:
    """Give the names that a stub declares or takes from elsewhere by name."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (one.asname for one in node.names if one.asname == one.name)


def test_the_package_has_every_name_of_its_stubs() -> None:
    stubs = list(modules())  # now all are imported
    lacking = set()
    for path in sorted((SOURCE / "retrograd").rglob("*.pyi")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] == "_methods":
            continue
        module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        names = set(declared(path)) - {"pytest_torch"}  # a plugin, which refuses to be imported after torch
        lacking |= {f"{module.__name__}.{name}" for name in names if not hasattr(module, name)}
    for place, module in stubs:
        parts = place.split(".")[1:]
        path = STUBS.joinpath(*parts)
        stub = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        lacking |= {f"{place}.{name}" for name in declared(stub) if not hasattr(module, name)}
    private = {name for name in lacking if name.rpartition(".")[2].startswith("_") or name.endswith(".Tensor")}
    assert lacking - private - {"torch.utils.tensorboard"} == set()


def test_tensors_have_every_method_of_the_stub() -> None:
    tree = ast.parse((SOURCE / "retrograd" / "tensor" / "_methods.pyi").read_text())
    (methods,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    names = {node.name for node in methods.body if isinstance(node, ast.FunctionDef)}
    assert len(names) > 500
    assert {name for name in names if not hasattr(retrograd.Tensor, name)} == set()


def test_editors_show_docstrings() -> None:
    """A function's first form has the first line of its docstring."""
    package = ast.parse((SOURCE / "retrograd" / "__init__.pyi").read_text()).body
    (methods,) = (
        node
        for node in ast.parse((SOURCE / "retrograd" / "tensor" / "_methods.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    for owner, body in ((retrograd, package), (retrograd.Tensor, methods.body)):
        first = {node.name: node for node in reversed(body) if isinstance(node, ast.FunctionDef)}
        shown = {name: ast.get_docstring(node) for name, node in first.items() if not name.startswith("__")}
        said = {name: (getattr(owner, name).__doc__ or "").strip().partition("\n")[0] or None for name in shown}
        properties = {name for name in shown if isinstance(getattr(owner, name), property)}
        assert {name for name in shown if shown[name] != said[name]} - properties == set()
        assert sum(map(bool, shown.values())) > 450
