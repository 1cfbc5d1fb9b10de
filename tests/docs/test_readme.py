"""README.md is the face of the project: its error message is real, its example short, and it fits what pages say elsewhere.

test_code_blocks.py runs the example.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .pages import programs

README = (Path(__file__).parents[2] / "README.md").read_text()


def run(tmp_path, name, program):
    (tmp_path / name).write_text(program)
    command = [sys.executable, "-m", "retrograd", "run", name]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)


def test_the_error_message(tmp_path):
    program = (
        "import torch\n\nx = torch.ones(2, requires_grad=True)\ny = x + 1\nz = y * y\ny.add_(1)\nz.sum().backward()\n"
    )
    shown = re.search(r"```\n(RuntimeError: .*?)```", README, re.DOTALL)[1]
    done = run(tmp_path, "wrong.py", program)
    said = done.stderr[done.stderr.index("RuntimeError:") :].replace(f"{tmp_path}/", "")
    assert said.split() == shown.split()  # README wraps the lines


def test_the_example_is_short():
    (program,) = programs(README)
    lines = [line for line in program.body.splitlines() if line.strip()]
    assert len(lines) <= 15


def test_the_two_commands_and_a_picture_come_before_everything_else():
    start = README.partition("## An example")[0]
    assert "make run" in start
    assert "make test" in start
    assert "![" in start
