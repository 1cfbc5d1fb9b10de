"""Figures in the documents that the repository itself knows."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_share_of_torchs_tests():
    """`python -m tests.torch_tests` counts the programs; what fails is listed with reasons."""
    failing = len(json.loads((ROOT / "tests" / "torch_tests" / "known.json").read_text()))
    table = (ROOT / "docs" / "torch_tests.md").read_text()
    rows = [
        tuple(map(int, row)) for row in re.findall(r"^\| Test\w+ \| (\d+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE)
    ]
    passed, failed, left_out = (sum(column) for column in zip(*rows, strict=True))
    assert failed == failing
    assert f"| all | {passed} | {failed} | {left_out} |" in table
    assert f"- {passed} of {passed + failed} programs" in (ROOT / "docs" / "benchmarks.md").read_text()
