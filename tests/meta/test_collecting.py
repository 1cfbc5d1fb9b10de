"""Every file of tests can be collected where torch and what else only the oracle's tests need is not installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONAL = {"torch", "jax", "expecttest"}


def file_of(module: str) -> Path | None:
    """Return the file of a module of the tests."""
    path = ROOT / module.replace(".", "/")
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.exists()), None)


def imported(statement: ast.stmt) -> Iterator[str]:
    """Go through the modules that a statement imports when its file is."""
    if isinstance(statement, ast.Import):
        yield from (one.name for one in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module:
        yield statement.module
        yield from (f"{statement.module}.{one.name}" for one in statement.names)


@cache
def needs(path: Path) -> str | None:
    """Return how a file comes to import what may not be installed, before it asks whether it is; None if it does not."""
    text = path.read_text()
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        own = lines[statement.lineno - 1 : statement.end_lineno]
        if "importorskip" in "".join(own) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return None
        for module in imported(statement):
            if module.split(".")[0] in OPTIONAL:
                return f"{path.relative_to(ROOT)} imports {module}"
            other = file_of(module) if module.startswith("tests") else None
            if other is not None and other != path and (told := needs(other)):
                return f"{path.relative_to(ROOT)} imports {module}; {told}"
    return None


def test_what_is_optional_is_asked_for_before_it_is_imported() -> None:
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")]
    assert [told for path in files if (told := needs(path))] == []
