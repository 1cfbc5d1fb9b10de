"""The first program in docs/dispatch.md prints what it says it prints."""

from __future__ import annotations

import re
from pathlib import Path

from .test_readme import run

TEXT = (Path(__file__).parents[2] / "docs" / "dispatch.md").read_text()


def test_the_example(tmp_path):
    program, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL).groups()
    done = run(tmp_path, "seeing.py", program)
    assert done.stdout == shown, done.stderr
