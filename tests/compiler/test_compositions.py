"""The compositions of transforms under compile give the values that JAX gives, in the first call and in later ones."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import _making
from retrograd.compiler._purity import Verdict
from tests.compiler.samples import some
from tests.transforms.compositions import TABLE, Row
from tests.transforms.test_compositions import EXPECTED, check


@pytest.mark.parametrize("row", some(TABLE, 6), ids=lambda row: row.name)
def test_a_composition(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    # its Python has no effects, which the analysis cannot know of rows that are made by rules
    monkeypatch.setattr(_making, "analyse", lambda *call: Verdict(True, "", None, [], [], [], []))

    def whole() -> Any:
        return row.program(torch)

    compiled = torch.compile(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            check(compiled(), EXPECTED[row.name], row.name)
    assert not [one for one in compiled._compiled.reasons if "differs from eager" in one and "strides" not in one]
