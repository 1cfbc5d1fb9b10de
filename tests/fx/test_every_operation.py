"""make_fx of every operation of the table: it is recorded, and what was recorded holds for other inputs."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.fx.table import holds, samples, targets, traced

pytestmark = pytest.mark.filterwarnings("ignore")


def test_every_operation_is_recorded() -> None:
    wrong, seen = [], 0
    for op, sample in samples("forward", 2):
        seen += 1
        if not holds(retrograd, traced(retrograd, op, sample, "forward"), op, sample, "forward"):
            wrong.append(f"{op.name}{sample}")
    assert wrong == []
    assert seen > 1750


@pytest.mark.oracle
def test_most_operations_are_recorded_as_torchs() -> None:
    torch: Any = pytest.importorskip("torch")
    same = asked = 0
    for op, sample in samples("forward", 1):
        try:
            wanted = targets(traced(torch, op, sample, "forward"))
        except Exception:  # what torch's tracer refuses
            continue
        asked += 1
        same += targets(traced(retrograd, op, sample, "forward")) == wanted
    assert same / asked > 0.7
