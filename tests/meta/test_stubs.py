"""The .pyi files: up to date, and right in the eyes of a type checker."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "make_stubs.py"

PROGRAM = """
import retrograd as torch
from retrograd import linalg

x = torch.randn(3, 4, requires_grad=True)
y: torch.Tensor = (x @ x.t()).softmax(dim=-1).sum(0, keepdim=True) * 2 + 1
z: torch.Tensor = torch.add(x, 1.0, alpha=2, out=y)
same: bool = torch.allclose(x, x)
inverse: torch.Tensor = linalg.inv(y)
x.add_(1).view(-1, 2).to(torch.float64)
x.no_such_method()
torch.no_such_function(x)
"""


def test_stubs_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_stubs", TOOL)
    make_stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_stubs)
    stale = [path.name for path, text in make_stubs.stubs().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run: python tools/make_stubs.py"


@pytest.mark.slow
def test_a_type_checker_knows_names_and_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    errors = [line for line in run.stdout.splitlines() if "error:" in line]
    assert len(errors) == 2, run.stdout
    assert '"Tensor" has no attribute "no_such_method"' in errors[0]
    assert 'Module has no attribute "no_such_function"' in errors[1]
