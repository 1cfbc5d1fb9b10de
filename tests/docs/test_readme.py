"""The programs in README.md print what it says they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def run(tmp_path, name, program):
    (tmp_path / name).write_text(program)
    command = [sys.executable, "-m", "retrograd", "run", name]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)


def test_the_example(tmp_path):
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    shown = re.search(r"\$ retrograd run tour\.py\n((?:    .*\n)+)", README)[1]
    done = run(tmp_path, "tour.py", program)
    assert done.stdout == re.sub(r"^    ", "", shown, flags=re.MULTILINE), done.stderr


def test_the_error_message(tmp_path):
    program = (
        "import torch\n\nx = torch.ones(2, requires_grad=True)\ny = x + 1\nz = y * y\ny.add_(1)\nz.sum().backward()\n"
    )
    shown = re.search(r"```\n(RuntimeError: .*?)```", README, re.DOTALL)[1]
    done = run(tmp_path, "wrong.py", program)
    said = done.stderr[done.stderr.index("RuntimeError:") :].replace(f"{tmp_path}/", "")
    assert said.split() == shown.split()  # README wraps the lines
