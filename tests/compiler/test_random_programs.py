"""Random programs under compile: what they leave behind after the first, the second and the third call is what eager leaves.

The programs are samples: `python -m tests.compiler.drawn_programs` and `python -m tests.compiler.written_programs` try others.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")  # which chooses the steps of programs

from tests.compiler.drawn_programs import differences
from tests.compiler.written_programs import judged
from tests.random_programs import building

pytestmark = pytest.mark.oracle

PARTS = 4
DRAWN, WRITTEN = 25, 60  # programs of each part


@pytest.mark.parametrize("part", range(PARTS))
def test_operations_and_transforms(part: int) -> None:
    compiled = 0
    for number in range(part * DRAWN, (part + 1) * DRAWN):
        for _, told, function in differences(building.program(17, number)):
            assert told is None, told
            compiled += bool(function._compiled.records)
    assert compiled > DRAWN / 4  # else nothing was tested


@pytest.mark.parametrize("part", range(PARTS))
def test_views_writes_and_backward_passes(part: int) -> None:
    compiled = 0
    for number in range(part * WRITTEN, (part + 1) * WRITTEN):
        told, function = judged(f"sample:{number}")
        assert told is None, told
        compiled += bool(function._compiled.records)
    assert compiled > WRITTEN / 4
