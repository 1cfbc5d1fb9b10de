"""Refusals while `import torch` gives retrograd: its classes say that they are torch's, and are still known."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd import as_torch


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        ("torch.ones(-1, dtype=torch.float32)", RuntimeError, "negative dimension"),
        ("torch.softmax(torch.ones(2), 5, dtype=torch.float64)", IndexError, "Dimension out of range"),
        ("torch.ones(2, dtype=torch.int32, requires_grad=True)", RuntimeError, "floating point"),
        ("torch.ones(3).view(torch.float64)", RuntimeError, "size"),
        ("torch.multinomial(torch.ones(2), 5, generator=torch.Generator())", RuntimeError, "sample"),
        ("torch.ones(2).clone(memory_format=torch.channels_last)", RuntimeError, "rank 4"),
    ],
)
def test_the_true_error_is_told(program: str, kind: type[Exception], words: str) -> None:
    with as_torch(), pytest.raises(kind, match=words):
        eval(program, {"torch": torch})
