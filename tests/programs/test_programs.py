"""Whole programs, as users write them: each says `import torch` and prints what it found.

They run by `retrograd run`; with torch installed, the text must be torch's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TYPED = HERE.parent / "type_checking" / "programs"  # whose types are checked, too
PROGRAMS = sorted(path for folder in (HERE, TYPED) for path in folder.glob("*.py") if path.name != Path(__file__).name)


def output_of(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_runs(program):
    assert output_of("-m", "retrograd", "run", str(program))


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_prints_what_torch_prints(program):
    pytest.importorskip("torch")
    assert output_of("-m", "retrograd", "run", str(program)) == output_of(str(program))
