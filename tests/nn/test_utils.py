"""nn.utils and lazy modules against torch: what every program shows, error texts included."""

from __future__ import annotations

import pytest

import retrograd
from tests.nn import utils_programs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

from tests.nn.test_module_torch import shown  # noqa: E402 - it imports torch


@pytest.mark.parametrize("program", utils_programs.PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_program(program) -> None:
    ours, theirs = shown(retrograd, program), shown(torch, program)
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, f"line {k} of {program.__name__}"
