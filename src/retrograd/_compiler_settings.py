"""Settings of torch's compiler: objects that keep what programs set. Nothing reads them: there is one way to compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


class Settings(SimpleNamespace):
    """Keeps what is set, also for a block."""

    @contextmanager
    def patch(self, changes: Any = None, value: Any = None, **named: Any) -> Iterator[None]:
        """Set values for a block: a dict, a name and a value, or named ones."""
        wanted = {**(changes if isinstance(changes, dict) else {} if changes is None else {changes: value}), **named}
        before = {name: getattr(self, name) for name in wanted}  # a name that nobody has is an error, as in torch
        vars(self).update(wanted)
        try:
            yield
        finally:
            vars(self).update(before)


__all__ = ["Settings"]
