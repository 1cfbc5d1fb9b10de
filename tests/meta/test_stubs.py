"""The .pyi files are what the tool writes; what type checkers make of them is in tests/type_checking."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "make_stubs.py"


def test_stubs_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
