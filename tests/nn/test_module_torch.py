"""nn.Module against torch: what every program shows, error texts included."""

from __future__ import annotations

import re

import pytest

import retrograd
from tests.nn.module_programs import PROGRAMS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def shown(library, program) -> list[str]:
    texts = [str(part).split("\nHint")[0] for part in program(library)]
    return [re.sub(r"0x[0-9a-f]+", "0x", text).replace("retrograd.", "torch.") for text in texts]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program) -> None:
    ours, theirs = shown(retrograd, program), shown(torch, program)
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, f"line {k} of {program.__name__}"
