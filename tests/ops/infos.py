"""The table of operations: every public name that has a derivative, and some that have none."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.ops.opinfo import Op

FILES = sorted(path.stem for path in Path(__file__).parent.glob("infos_*.py"))  # each holds a list OPS
OPS: list[Op] = [op for file in FILES for op in import_module(f"tests.ops.{file}").OPS]
DIFFERENTIABLE = [op for op in OPS if op.differentiable]
