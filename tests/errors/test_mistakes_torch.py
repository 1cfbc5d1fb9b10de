"""docs/errors.md: what it says both libraries say is true, and retrograd never says less."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.errors.tool import ROOT, TOOL
from tests.oracle import without_tracker

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def test_there_are_forty() -> None:
    assert len({one.program for one in TOOL.MISTAKES}) == len(TOOL.MISTAKES) >= 40


def test_the_document_shows_them() -> None:
    answers = [(one, TOOL.answer(retrograd, one), TOOL.answer(torch, one)) for one in TOOL.MISTAKES]
    shown = (ROOT / "docs" / "errors.md").read_text().split(TOOL.BEGIN)[1].split(TOOL.END)[0]
    assert shown == f"\n{TOOL.table(answers)}", "run python tools/make_errors.py --write"


@pytest.mark.parametrize("mistake", TOOL.MISTAKES, ids=lambda one: one.what)
def test_retrograd_says_what_torch_says(mistake: Any) -> None:
    ours, theirs = TOOL.answer(retrograd, mistake), TOOL.answer(torch, mistake)
    assert ours.kind == theirs.kind or (ours.kind, theirs.kind) == ("MissingNameError", "AttributeError")
    # torch's hint about anomaly detection is how to find what retrograd names
    assert ours.words.startswith(without_tracker(theirs.words).split(" Hint: enable anomaly")[0].rstrip())
    assert mistake.more in ours.words
    assert mistake.more not in theirs.words or not mistake.more
    assert "github.com/pytorch" not in ours.words


@pytest.mark.parametrize("mistake", TOOL.MISTAKES, ids=lambda one: one.what)
def test_the_traceback_has_no_line_of_the_library(mistake: Any) -> None:
    assert TOOL.answer(retrograd, mistake).frames == 0
