"""Every program passes in retrograd but those of known differences; in torch all of them do."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.torch_tests.__main__ import load
from tests.torch_tests.suite import SUITES, modes_restored

load()
KNOWN: dict[str, str] = json.loads((Path(__file__).parent / "known.json").read_text())
PROGRAMS = {f"{suite.name}.{name}": one for suite in SUITES.values() for name, one in suite.programs.items()}


def run(library: Any, name: str) -> None:
    with warnings.catch_warnings(), modes_restored():
        warnings.simplefilter("ignore")
        PROGRAMS[name](library)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_torch(name: str, request: pytest.FixtureRequest) -> None:
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    run(retrograd, name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_does_so(name: str) -> None:
    run(pytest.importorskip("torch"), name)


def test_known_differences_are_of_programs() -> None:
    assert KNOWN.keys() <= PROGRAMS.keys()
