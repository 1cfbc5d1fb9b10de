"""The shape of the source: who imports whom, how long files are, which names rules use."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

import retrograd
from retrograd._core.fused import fused_operations
from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._core.primitive import Primitive, primitives

PACKAGE = Path(retrograd.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
for _path in (PACKAGE / "_ops").glob("*.py"):
    importlib.import_module(f"retrograd._ops.{_path.stem}")  # some are loaded when first used

# A file imports, at its top, from its own layer and from those before it.
LAYERS = [
    {
        "_errors",
        "_modes",
        "_places",
        "_generated",
        "_dtypes",
        "_stored",
        "_python_data",
        "_device",
        "_size",
        "_settings",
        "_thresholds",
    }
    | {"_progress", "_tracebacks", "_warnings", "_missing", "_absent", "_elsewhere", "_public"},
    {"_core"},
    {"_native"},
    {"_random"},
    {"_ops"},
    {"_graph"},
    {"_arguments", "_quick_forms", "_signatures", "overrides", "utils._pytree"},
    {"tensor"},
    {"autograd"},
    {"func"},
]
ABOVE_ALL = {
    "__init__",
    "__main__",
    "_as_torch",
    "cli",
    "pytest_torch",
}  # they put the package together
NAMED = {name for names in LAYERS for name in names} | ABOVE_ALL
LATER = {path.stem for path in PACKAGE.iterdir()} - NAMED  # all else stands above func
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
RANK |= dict.fromkeys(LATER, len(LAYERS)) | dict.fromkeys(ABOVE_ALL, len(LAYERS) + 1)

# Imports inside functions that go upward: they break a cycle. The number may only fall.
UPWARD_IN_FUNCTIONS = 16


def unit(path: Path) -> str:
    """Return the part of the package a file belongs to."""
    return part(list(path.relative_to(PACKAGE).with_suffix("").parts))


def part(names: list[str]) -> str:
    """Return the layer of a module: its folder, or the module itself if it has a layer of its own."""
    own = ".".join(names[:2])
    return own if own in RANK else names[0]


def imported(node: ast.stmt, path: Path) -> Iterator[str]:
    """Return the parts of the package that a statement imports from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = alias.name.split(".")
            if parts[0] == "retrograd" and len(parts) > 1:
                yield part(parts[1:])
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            here = ["retrograd", *path.relative_to(PACKAGE).with_suffix("").parts]
            base = here[: len(here) - node.level]
            parts = base + (node.module.split(".") if node.module else [])
        else:
            parts = (node.module or "").split(".")
        if parts[0] != "retrograd":
            return
        if len(parts) > 1:
            yield from {part([*parts[1:], alias.name]) for alias in node.names}
        else:
            yield from (part([alias.name]) for alias in node.names)


@cache
def imports(path: Path) -> list[tuple[int, str, bool]]:
    """Return the imports of a file that are run: the line, the part of the package, and whether they stand in a function."""
    found: list[tuple[int, str, bool]] = []

    def look(body: list[Any], inside: bool) -> None:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found.extend((node.lineno, name, inside) for name in imported(node, path) if name in RANK)
            elif not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
                deeper = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                for part_of_it in ("body", "orelse", "finalbody", "handlers", "cases"):
                    look(getattr(node, part_of_it, []), deeper)

    look(ast.parse(path.read_text()).body, inside=False)
    return found


def upward(path: Path, *, inside: bool) -> list[str]:
    """Return the imports of a file from layers above its own, in functions or outside of them."""
    own = RANK[unit(path)]
    where = path.relative_to(PACKAGE)
    return [
        f"{where}:{line} imports {name}" for line, name, here in imports(path) if here == inside and RANK[name] > own
    ]


def test_nothing_imports_upward() -> None:
    assert [line for path in FILES for line in upward(path, inside=False)] == []


def test_upward_imports_inside_functions_do_not_grow() -> None:
    found = [line for path in FILES for line in upward(path, inside=True)]
    assert len(found) <= UPWARD_IN_FUNCTIONS, "\n".join(["too many:", *found])


def rules_of(primitive: Primitive) -> list[Any]:
    compiled = [*primitive.rules.values(), primitive.group_rule]
    return [rule.function for rule in compiled if rule is not None] + [primitive.jvp_rule] * (
        primitive.jvp_rule is not None
    )


def reached_from(function: FunctionType, seen: set[FunctionType]) -> set[FunctionType]:
    """Return a rule and the functions of `_ops` that it calls, directly or not."""
    if function not in seen:
        seen.add(function)
        for name in names_in(function.__code__):
            called = function.__globals__.get(name)
            if isinstance(called, FunctionType) and called.__module__.startswith("retrograd._ops"):
                reached_from(called, seen)
    return seen


def names_in(code: CodeType) -> set[str]:
    inner = [names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def test_rules_do_not_know_numpy() -> None:
    """Rules and decompositions, and what they call, see arrays through `xp`: only implementations may name the library."""
    rules = [(primitive.name, rule) for primitive in primitives.values() for rule in rules_of(primitive)]
    rules += [(operation.name, operation.parts) for operation in fused_operations.values()]
    for name, rule in rules:
        for function in reached_from(rule, set()):
            assert not {"np", "cupy", "module"} & names_in(function.__code__), f"{name}: {function.__name__}"


# ---- the vocabulary ----
@pytest.mark.parametrize("path", sorted((PACKAGE / "_ops").glob("*.py")), ids=lambda p: p.name)
def test_names_of_xp_exist(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xp":
            assert node.attr == "module" or hasattr(numpy_namespace, node.attr), (
                f"{path.name}:{node.lineno}: xp.{node.attr} does not exist"
            )


def test_the_namespace_has_every_primitive() -> None:
    """Over raw arrays `xp` has the same names as over Tensors; operations on levels have no raw form."""
    from retrograd._ops.levels import LevelPrimitive

    missing = [
        p.name
        for p in primitives.values()
        if not isinstance(p, LevelPrimitive) and not hasattr(numpy_namespace, p.name)
    ]
    assert missing == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_warnings_are_placed_at_the_users_line(path: Path) -> None:
    assert re.search(r"(?<!_)\bwarnings\.warn\(", path.read_text()) is None, "use retrograd._warnings.warn"
