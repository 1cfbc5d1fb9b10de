"""Links between the documents lead to files and headings that exist, and so do the commands and paths they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import FENCE, PAGES, ROOT


def anchors(page: Path) -> set[str]:
    """Return the names by which the headings of a page can be linked to, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_exist(page):
    text = page.read_text()
    links = [
        link for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)) if not link.startswith(("http", "mailto"))
    ]
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []
    to_headings = [link.partition("#")[::2] for link in links if "#" in link]
    assert [
        (path, name) for path, name in to_headings if name not in anchors(page.parent / path if path else page)
    ] == []
    paths = re.findall(r"`((?:docs|tests|benchmarks|tools|examples)/[\w/.-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    programs = re.findall(r"python ((?:benchmarks|tools)/\w+\.py)", text)
    modules = [f"{name.replace('.', '/')}" for name in re.findall(r"python -m (tests(?:\.\w+)+)", text)]
    assert [path for path in programs if not (ROOT / path).exists()] == []
    assert [path for path in modules if not (ROOT / path).is_dir() and not (ROOT / f"{path}.py").exists()] == []
