"""Code that the package writes as text: how it is compiled, shown in tracebacks and written out.

Text is compiled here and nowhere else. Each text is named after what it is for, and
- tracebacks and debuggers show its lines, which `linecache` has;
- it counts as the package's (`_places.is_own`): a node that is made in it reports the user's line;
- with `RETROGRAD_DUMP=folder` in the environment it is written there, a file for each text.
"""

from __future__ import annotations

import builtins
import linecache
import os
from types import CodeType, FunctionType
from typing import Any

from ._places import own_text

_texts: dict[str, str] = {}  # by file name


def emit(what: str, text: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Run a text among the names of `scope`, and return what it defines. `what` says in a few words what it is for."""
    made: dict[str, Any] = {}
    exec(compiled(text, own_text(what)), scope, made)
    return made


def reading(names: dict[str, Any], code: CodeType, name: str) -> Any:
    """Make a function of code that reads its names in a dictionary. Python's own must be there: C code that imports looks for them."""
    names.setdefault("__builtins__", builtins)
    return FunctionType(code, names, name)


def compiled(text: str, file: str, flags: int = 0) -> CodeType:
    """Compile a text and let tracebacks and readers find it under the name of a file, which no other text gets.

    `flags` are those of `compile`: which features of `__future__` the text is written with.
    """
    first, count = file, 1
    while _texts.setdefault(file, text) != text:
        count += 1
        file = f"{first} ({count})"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    if (folder := os.environ.get("RETROGRAD_DUMP")) is not None:
        _write_out(text, file, folder)
    return compile(text, file, "exec", flags, dont_inherit=True)  # type: ignore[no-any-return]


def _write_out(text: str, file: str, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    words = "".join(letter if letter.isalnum() else " " for letter in file).split()
    with open(os.path.join(folder, "_".join(words) + ".py"), "w", encoding="utf-8") as out:
        out.write(f"# {file}\n{text}\n")
