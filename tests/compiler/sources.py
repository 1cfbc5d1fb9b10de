"""Programs that are made of text, and have a source that can be read."""

from __future__ import annotations

import linecache
from typing import Any


def define(text: str, name: str, scope: dict[str, Any]) -> None:
    """Run a text whose source can be read again, as that of a file can."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec", dont_inherit=True), scope)
