"""Links between the documents lead to files that exist, and so do the commands and paths they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_exist(page):
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith(("http", "mailto"))]
    assert [link for link in links if not (page.parent / link).exists()] == []
    paths = re.findall(r"`((?:docs|tests|benchmarks|tools|examples)/[\w/.-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    programs = re.findall(r"python ((?:benchmarks|tools)/\w+\.py)", text)
    modules = [f"{name.replace('.', '/')}" for name in re.findall(r"python -m (tests(?:\.\w+)+)", text)]
    assert [path for path in programs if not (ROOT / path).exists()] == []
    assert [path for path in modules if not (ROOT / path).is_dir() and not (ROOT / f"{path}.py").exists()] == []
