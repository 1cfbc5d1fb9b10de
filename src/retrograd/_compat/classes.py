"""torch.classes: classes that compiled libraries register. None can be loaded here."""

from __future__ import annotations

from typing import Any

__path__: list[str] = []  # libraries clear it, so that nothing looks for files here


class _Namespace:
    """Where a library's classes would be."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{name}', but it does not exist! Ensure that it is registered via "
            "torch::class_\nHint: compiled classes need torch itself; retrograd is written in Python."
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
