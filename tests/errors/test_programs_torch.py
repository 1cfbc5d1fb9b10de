"""What retrograd says of 230 further mistakes: torch's class and words, perhaps more, and at most one line of the library."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.errors.programs import PROGRAMS
from tests.errors.tool import TOOL
from tests.oracle import without_tracker

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("what", PROGRAMS)
def test_it_says_what_torch_says(what: str) -> None:
    mistake = TOOL.Mistake(what, PROGRAMS[what])
    theirs: Any = TOOL.answer(torch, mistake)
    ours: Any = TOOL.answer(retrograd, mistake)
    assert ours.kind == theirs.kind or (ours.kind, theirs.kind) == ("MissingNameError", "AttributeError")
    # torch's hint about anomaly detection is how to find what retrograd names
    assert ours.words.startswith(without_tracker(theirs.words).split(" Hint: enable anomaly")[0].rstrip())
    assert ours.frames <= 1
    assert "github.com/pytorch" not in ours.words
