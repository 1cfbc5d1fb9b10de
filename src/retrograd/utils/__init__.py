"""torch.utils."""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = ("checkpoint", "hooks")  # loaded when they are asked for


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
