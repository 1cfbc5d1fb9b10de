"""Figures in the documents that the repository itself knows."""

from __future__ import annotations

import json
import re
import sys

from .pages import ROOT

sys.path.append(str(ROOT / "benchmarks"))
import weights


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


def test_what_the_package_weighs():
    """The readme's table is one measurement; the package grows with every change."""
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+) \|", (ROOT / "README.md").read_text(), re.MULTILINE))
    together = float(rows.pop("together"))
    rows = {
        name: float(size) for name, size in rows.items() if name.split()[0] in {"retrograd", *weights.dependencies()}
    }
    assert len(rows) == 1 + len(weights.dependencies())
    assert abs(rows["retrograd"] - weights.own_megabytes()) < 0.5
    assert abs(together - sum(rows.values())) < 1
