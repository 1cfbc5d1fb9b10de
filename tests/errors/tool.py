"""tools/make_errors.py as a module: what runs a mistake and keeps the answer."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_errors", ROOT / "tools" / "make_errors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _loaded()
