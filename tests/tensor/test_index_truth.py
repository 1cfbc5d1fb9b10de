"""An index that is one truth value takes all that follows, or nothing."""

from __future__ import annotations

import pytest

import retrograd
from tests.oracle import answer

WRITE = "(lambda x: (x.__setitem__(torch.tensor({}), {}), x))(torch.zeros({}))"


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        "torch.ones(2)[torch.tensor(True)]",
        "torch.ones(2, requires_grad=True)[torch.tensor(False)]",
        "torch.tensor(3.0)[torch.tensor(True)]",
        "torch.tensor(3.0)[torch.tensor(False)]",
        "torch.ones(2)[:, torch.tensor(True)]",
        "torch.ones(2)[torch.tensor(True), torch.tensor(False)]",
        "torch.arange(3)[torch.tensor(1, dtype=torch.uint8)]",
        "torch.arange(3)[torch.tensor([0, 1]), torch.tensor(True)]",
        "torch.arange(3)[..., torch.tensor(True)]",
        WRITE.format("True", "3", "2"),
        WRITE.format("False", "3", "2"),
        WRITE.format("True", "torch.ones(2)", "2"),
        WRITE.format("True", "3", "()"),
        WRITE.format("False", "3", "()"),
    ],
)
def test_as_in_torch(program: str) -> None:
    assert answer(retrograd, program) == answer(pytest.importorskip("torch"), program)
