"""Lazy modules against torch: what every program shows, error texts included."""

from __future__ import annotations

import pytest

import retrograd
from tests.nn import lazy_programs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

from tests.nn.test_module_torch import shown  # noqa: E402 - it imports torch


@pytest.mark.parametrize("program", lazy_programs.PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_program(program) -> None:
    ours, theirs = shown(retrograd, program), shown(torch, program)
    for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, f"line {k} of {program.__name__}"


def test_uninitialised_buffers_can_be_copied() -> None:
    """torch cannot."""
    import copy

    buffer = retrograd.nn.UninitializedBuffer(dtype=retrograd.float64)
    made = copy.deepcopy(buffer)
    made.materialize((2,))
    assert made.dtype is retrograd.float64
    assert retrograd.nn.parameter.is_lazy(buffer)


def test_the_classes_leave_functions_quick() -> None:
    """Importing nn defines subclasses of Tensor; functions need not look for `__torch_function__` because of them."""
    import subprocess
    import sys

    program = "import retrograd.nn, sys; from retrograd import overrides; sys.exit(overrides.may_take_over())"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
